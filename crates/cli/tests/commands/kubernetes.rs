//! `deploy/kubernetes` fits the binary, and its files fit each other. `ci/manifests` checks that
//! Kubernetes accepts them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use crate::common::{json, run};
use crate::deploy::{check, default_limits, memory_max_mib, read};

const LABEL: &str = "matchLabels: { app.kubernetes.io/name: snowmint }";
/// Directory of the servers' Secrets.
const SECRETS: &str = "/etc/snowmint";

fn manifest(name: &str) -> String {
    read(&format!("deploy/kubernetes/{name}"))
}

/// Returns the variables of the first server in Kubernetes, with another directory of Secrets.
fn variables(secrets: &Path) -> Vec<(String, String)> {
    let manifest = manifest("statefulset.yaml");
    let found = manifest.lines().filter_map(|line| line.split_once("name: SNOWMINT_"));
    let variable = |(_, rest): (&str, &str)| {
        let (name, value) = match rest.split_once(", value: ") {
            Some((name, value)) => (name, value.trim_end_matches(" }").trim_matches('"')),
            None if rest == "STORE__URL" => (rest, "sqlite:ids.db"),
            None if rest == "SERVER__OWNER" => (rest, "snowmint-0"),
            None => panic!("what is SNOWMINT_{rest}?"),
        };
        let value = value
            .replace("$(SNOWMINT_SERVER__OWNER)", "snowmint-0")
            .replace("$(POD_NAMESPACE)", "snowmint")
            .replace(SECRETS, secrets.to_str().unwrap());
        (format!("SNOWMINT_{name}"), value)
    };
    found.map(variable).collect()
}

fn value_of<'a>(variables: &'a [(String, String)], name: &str) -> &'a str {
    let found = variables.iter().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("no {name}")).1.as_str()
}

/// Returns the names in the servers' certificate.
fn certified() -> Vec<String> {
    let certificates = manifest("certificates.yaml");
    let (_, names) = certificates.split_once("dnsNames:\n").unwrap();
    let names = names.lines().map(str::trim).take_while(|line| !line.starts_with("issuerRef"));
    names.filter_map(|line| Some(line.strip_prefix("- ")?.trim_matches('"').to_owned())).collect()
}

fn is_certified(name: &str) -> bool {
    let parent = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
    certified().iter().any(|known| known == name || Some(known) == parent.as_ref())
}

/// Writes the contents of the three Secrets, as README.md describes.
fn make_secrets(folder: &Path) {
    let token = json(&run(&["token", "new", "--json"]).ok());
    let hash = token["hash"].as_str().unwrap();
    let tokens = format!("[prometheus]\nhashes = [\"{hash}\"]\ngrants = [\"metrics *\"]\n");
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(certified()).unwrap().self_signed(&key).unwrap().pem();
    let (peers, key) = (json(&run(&["token", "new", "--json"]).ok()), key.serialize_pem());
    for (name, text) in [
        ("tokens.toml", tokens.as_str()),
        ("peers.token", peers["token"].as_str().unwrap()),
        ("tls.crt", cert.as_str()),
        ("tls.key", key.as_str()),
        ("ca.crt", cert.as_str()),
    ] {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        // The mode of `defaultMode`: files that other users can read cause a warning.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
    }
}

/// Without tokens and TLS a server on all addresses is rejected, so this also shows that both are
/// on.
#[test]
fn binary_accepts_the_server_manifest() {
    let folder = tempfile::tempdir().unwrap();
    make_secrets(folder.path());
    let variables = variables(folder.path());
    let manifest = manifest("statefulset.yaml");
    let args = manifest.lines().find_map(|line| line.trim().strip_prefix("args: ")).unwrap();
    let args: Vec<String> = serde_json::from_str(args).unwrap();
    check(&args.iter().map(String::as_str).collect::<Vec<_>>(), &variables);
    for (variable, port) in [("HTTP", "7700"), ("RESP", "7701")] {
        let listens = value_of(&variables, &format!("SNOWMINT_SERVER__{variable}"));
        assert_eq!(listens, format!("0.0.0.0:{port}"));
        assert!(manifest.contains(&format!("containerPort: {port}")), "{port}");
    }
    // The image's default is different.
    assert_eq!(value_of(&variables, "SNOWMINT_SERVER__INSECURE"), "false");
    // Probes use the server's scheme, and existing paths.
    let probes: Vec<&str> = manifest.lines().filter(|line| line.contains("httpGet:")).collect();
    assert_eq!(probes.len(), 2);
    for (probe, path) in probes.iter().zip(["/livez", "/readyz"]) {
        let expected = format!("httpGet: {{ path: {path}, port: http, scheme: HTTPS }}");
        assert_eq!(probe.trim(), expected);
    }
    // The image's name is immutable, and the memory limit has room for all other limits.
    let image = manifest.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
    assert!(image.contains("@sha256:"), "{image}");
    let (_, memory) = manifest.split_once("limits: { memory: ").unwrap();
    let (memory_mib, _) = memory.split_once("Mi }").unwrap();
    let default_of = default_limits();
    let needed_mib = memory_max_mib(|key| {
        let name = format!("SNOWMINT_{}", key.to_uppercase().replace('.', "__"));
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map_or_else(|| default_of(key), |(_, value)| value.parse().unwrap())
    });
    assert!(needed_mib <= memory_mib.parse::<u64>().unwrap(), "{needed_mib} MiB of {memory_mib}");
}

/// Peers and clients are sent to this name, and check the certificate.
#[test]
fn certificate_covers_the_announced_names() {
    let variables = variables(Path::new(SECRETS));
    let announced = value_of(&variables, "SNOWMINT_SERVER__ANNOUNCE");
    assert!(is_certified(announced), "{announced}: {:?}", certified());
    assert!(!is_certified("snowmint-0.elsewhere.svc"));
    // The cluster's DNS has the name: that of a pod in the Service that its StatefulSet names.
    let (_, service) = announced.split_once('.').unwrap();
    let name = service.split('.').next().unwrap();
    assert!(manifest("statefulset.yaml").contains(&format!("serviceName: {name}\n")), "{name}");
    let services = manifest("service.yaml");
    let (_, pods) = services.split_once(&format!("name: {name}\n")).unwrap();
    assert!(pods.contains("clusterIP: None"), "{name}");
    // The certificate also covers the Service, all servers together, and the name that Prometheus
    // uses.
    for name in ["snowmint", "snowmint.snowmint.svc", service] {
        assert!(is_certified(name), "{name}");
    }
    let monitor = manifest("podmonitor.yaml");
    let server_name =
        monitor.lines().find_map(|line| line.trim().strip_prefix("serverName: ")).unwrap();
    assert!(is_certified(server_name), "{server_name}");
}

/// The other files concern the servers' pods and ports, and README.md names each file.
#[test]
fn other_manifests_refer_to_the_servers() {
    let kustomization = manifest("kustomization.yaml");
    let readme = manifest("README.md");
    for entry in fs::read_dir(crate::deploy::root().join("deploy/kubernetes")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".yaml") || name == "kustomization.yaml" {
            continue;
        }
        let is_listed = kustomization.contains(&format!("  - {name}\n"));
        // Not every cluster has the kinds of these files.
        let is_apart = ["certificates.yaml", "podmonitor.yaml"].contains(&name.as_str());
        assert_ne!(is_listed, is_apart, "{name}");
        assert!(readme.contains(&name), "{name}");
    }
    for name in ["disruption.yaml", "podmonitor.yaml"] {
        assert!(manifest(name).contains(LABEL), "{name}");
    }
    let services = manifest("service.yaml");
    assert_eq!(services.matches("selector: { app.kubernetes.io/name: snowmint }").count(), 2);
}

/// A user who may create pods in a namespace chooses their labels: so each peer also names the
/// namespace.
#[test]
fn pod_label_alone_never_opens_the_network() {
    let policies = manifest("networkpolicy.yaml");
    let (nothing, opened) = policies.split_once("\n---\n").unwrap();
    assert!(nothing.contains("podSelector: {}"), "{nothing}");
    assert!(!nothing.contains("ingress:") && !nothing.contains("egress:"), "{nothing}");
    assert_eq!(policies.matches(r#"policyTypes: ["Ingress", "Egress"]"#).count(), 2);
    let (_, rules) = opened.split_once("ingress:\n").unwrap();
    let rules: Vec<&str> = rules.lines().filter(|line| !line.trim().starts_with('#')).collect();
    let rules = rules.join("\n");
    // A peer begins with a dash: selectors under the same dash all apply, and another dash would be
    // another peer.
    let peers = rules.matches("        - namespaceSelector:\n").count();
    assert!(peers >= 6, "{rules}");
    assert_eq!(rules.matches("\n          podSelector:\n").count(), peers, "{rules}");
    assert_eq!(rules.matches("- podSelector:").count(), 0, "{rules}");
    assert_eq!(rules.matches("- ipBlock:").count(), 0, "{rules}");
    assert_eq!(rules.matches("Selector: {}").count(), 0, "{rules}");
    for port in ["7700", "7701"] {
        assert!(rules.contains(&format!("port: {port} }}")), "{port}");
    }
}
