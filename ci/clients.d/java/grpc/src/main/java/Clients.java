import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** grpc-java, with messages whose few fields are written here, without generated code. */
public final class Clients implements Loop.Client {
    /** More than http.head_bytes_max (16 KiB), and less than what the server reads. */
    private static final int METADATA_BYTES = 20 << 10;

    private static final MethodDescriptor.Marshaller<byte[]> RAW = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] message) {
            return new ByteArrayInputStream(message);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    };
    private static final MethodDescriptor<byte[], byte[]> MINT = MethodDescriptor.<byte[], byte[]>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName("snowmint.v1.Mint/Mint")
        .setRequestMarshaller(RAW)
        .setResponseMarshaller(RAW)
        .build();

    private final Channel channel;

    private Clients(Loop.Address server) throws IOException {
        var credentials = Loop.CA == null
            ? InsecureChannelCredentials.create()
            : TlsChannelCredentials.newBuilder().trustManager(new File(Loop.CA)).build();
        Channel made = Grpc.newChannelBuilderForAddress(server.host(), server.port(), credentials).build();
        channel = Loop.TOKEN == null ? made : with(made, "authorization", "Bearer " + Loop.TOKEN);
    }

    private static Channel with(Channel channel, String name, String value) {
        Metadata metadata = new Metadata();
        metadata.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
        return ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(metadata));
    }

    private static List<Long> call(Channel channel, String key, int count) throws IOException {
        String[] parts = key.split(":", 2);
        var bytes = new ByteArrayOutputStream();
        CodedOutputStream request = CodedOutputStream.newInstance(bytes);
        request.writeString(1, parts[0]);
        request.writeUInt64(2, count);
        if (parts.length > 1) request.writeString(3, parts[1]);
        request.flush();
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS);
        CodedInputStream response = CodedInputStream.newInstance(ClientCalls.blockingUnaryCall(channel, MINT, options, bytes.toByteArray()));
        // The only field is the packed list of IDs, 8 bytes each.
        response.readTag();
        response.readRawVarint32();
        List<Long> ids = new ArrayList<>();
        while (!response.isAtEnd()) ids.add(response.readFixed64());
        return ids;
    }

    @Override
    public List<Long> incr(String key) throws IOException {
        return call(channel, key, 1);
    }

    @Override
    public List<Long> mint(String key, int count) throws IOException {
        return call(channel, key, count);
    }

    /** Sends more metadata than a server accepts. The call must fail as gRPC says, and the connection stay. */
    @Override
    public List<Long> metadata(String key) throws IOException {
        try {
            call(with(channel, "x-long", "a".repeat(METADATA_BYTES)), key, 1);
        } catch (StatusRuntimeException error) {
            if (error.getStatus().getCode() != Status.Code.RESOURCE_EXHAUSTED) throw error;
            return call(channel, key, 1);
        }
        throw new IllegalStateException(METADATA_BYTES + " bytes of metadata were accepted");
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(Channel.class), (mode, servers) -> new Clients(servers.get(0)));
    }
}
