//! The code in `generated/` matches the compiler's output for `proto/`.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use protox::prost::Message as _;

/// The variable that makes the test write the files, instead of comparing them.
const WRITE: &str = "SNOWMINT_WRITE_GENERATED";

/// Returns the files of `generated/`: names and contents.
fn made() -> BTreeMap<String, Vec<u8>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A directory that no other run uses.
    let scratch = format!("grpc-{}", std::process::id());
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(scratch);
    fs::create_dir_all(&scratch).unwrap();
    let mut compiler = protox::Compiler::new([home.join("proto")]).unwrap();
    compiler.include_imports(true);
    compiler.open_files(["snowmint/v1/mint.proto", "snowmint/store/v1/store.proto"]).unwrap();
    // The reflection data omits the comments; the code keeps them.
    compiler.include_source_info(false);
    let described = compiler.file_descriptor_set().encode_to_vec();
    compiler.include_source_info(true);
    // The client of the store's service calls any method by one function, with its path.
    for (package, has_client) in [("snowmint.v1", true), ("snowmint.store.v1", false)] {
        let mut files = compiler.file_descriptor_set();
        files.file.retain(|file| file.package() == package);
        tonic_prost_build::configure()
            .build_transport(false)
            .build_client(has_client)
            .out_dir(&scratch)
            .compile_fds(files)
            .unwrap();
    }
    let mut made: BTreeMap<_, _> = fs::read_dir(&scratch)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    fs::remove_dir_all(&scratch).unwrap();
    made.insert("snowmint.bin".into(), described);
    made
}

#[test]
fn generated_code_is_that_of_the_interface() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    let made = made();
    let names = ["snowmint.bin", "snowmint.store.v1.rs", "snowmint.v1.rs"];
    assert_eq!(made.keys().collect::<Vec<_>>(), names);
    for (name, contents) in made {
        let kept = kept.join(&name);
        if std::env::var_os(WRITE).is_some() {
            fs::write(&kept, &contents).unwrap();
        }
        let same = fs::read(&kept).unwrap() == contents;
        assert!(same, "{} is not what proto/ says; {WRITE}=1 writes it", kept.display());
    }
}
