import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The version of a library, from the name of the archive that has one of its classes. */
public final class Version {
    private static final Pattern ARCHIVE = Pattern.compile(".*?-([0-9].*?)(-linux.*)?\\.jar");

    private Version() {}

    public static String of(Class<?> library) throws Exception {
        Path archive = Path.of(library.getProtectionDomain().getCodeSource().getLocation().toURI());
        Matcher name = ARCHIVE.matcher(archive.getFileName().toString());
        return name.matches() ? name.group(1) : "unknown";
    }
}
