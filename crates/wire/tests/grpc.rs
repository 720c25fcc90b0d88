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

/// Returns the names of the calls that a definition declares, with the names of its services.
fn declared(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto").join(file);
    let text = fs::read_to_string(path).unwrap();
    let name = |line: &str| {
        let rest = line.strip_prefix("rpc ").or_else(|| line.strip_prefix("service "))?;
        rest.split(['(', ' ']).next().map(str::to_owned)
    };
    text.lines().map(str::trim).filter_map(name).collect()
}

#[test]
fn page_names_every_call() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/grpc.md");
    let page = fs::read_to_string(page).unwrap();
    // Code spans: with arguments, such as `Mint(source)`, or with a package before the name.
    let spans = page.split('`').skip(1).step_by(2);
    let named: Vec<&str> = spans.flat_map(|span| span.split(['(', '.', '/'])).collect();
    let calls = declared("snowmint/v1/mint.proto");
    assert!(calls.len() > 10 && calls.contains(&"Mint".to_owned()), "{calls:?}");
    let missing: Vec<_> = calls.iter().filter(|call| !named.contains(&call.as_str())).collect();
    assert!(missing.is_empty(), "grpc.md does not name {missing:?}");
    // The page leaves the calls of the other service to its definition, which describes each.
    assert!(page.contains("store/v1/store.proto") && page.contains("snowmint.store.v1.Store"));

    let table = page.split("| call | response |").nth(1).unwrap();
    let rows = table.lines().skip(1).take_while(|row| row.starts_with('|'));
    let ours = rows.filter(|row| !row.contains("grpc.health"));
    for cell in ours.filter_map(|row| row.split(" | ").next()) {
        for call in cell.split('`').skip(1).step_by(2) {
            let call = call.split('(').next().unwrap_or_default().to_owned();
            assert!(calls.contains(&call), "grpc.md names {call}, which mint.proto lacks");
        }
    }
}
