//! Recognises servers by their address: on this machine, or on a private network.

use url::{Host, Url};

/// Returns true if a URL's host is the loopback interface. Such requests cost nothing, and their
/// data stays on the machine.
pub(crate) fn is_on_this_machine(url: &Url) -> bool {
    match url.host() {
        // By name only: a lookup could answer differently for the request that follows.
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns true if the address is that of a self-hosted server: on this machine, on a private
/// network, or under a name that only a private network resolves.
pub(crate) fn is_on_private_network(url: &Url) -> bool {
    const NAMES: [&str; 5] = [".local", ".lan", ".internal", ".home.arpa", ".localdomain"];
    is_on_this_machine(url)
        || match url.host() {
            // A name without a dot is one of a container network or of a local name server.
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                !name.contains('.') || NAMES.iter().any(|suffix| name.ends_with(suffix))
            }
            Some(Host::Ipv4(address)) => address.is_private() || address.is_link_local(),
            Some(Host::Ipv6(address)) => {
                address.is_unique_local() || address.is_unicast_link_local()
            }
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_recognised_by_its_address() {
        let here = |url: &str| is_on_this_machine(&url.parse().unwrap());
        assert!(
            here("http://localhost:11434") && here("http://127.0.0.2") && here("http://[::1]:1")
        );
        assert!(
            !here("http://192.168.1.5:11434")
                && !here("https://ollama.com")
                && !here("http://localhost.example")
        );
    }

    #[test]
    fn self_hosted_servers_are_recognised_by_their_address() {
        let own = |url: &str| is_on_private_network(&url.parse().unwrap());
        for url in [
            "http://localhost:8080",
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://192.168.1.5:8080",
            "http://10.0.0.7",
            "http://172.20.0.2",
            "http://[fd00::5]:8080",
            "http://ollama:11434",
            "http://gpu.lan",
            "http://studio.local:1234",
        ] {
            assert!(own(url), "{url}");
        }
        for url in [
            "https://api.openai.com",
            "http://8.8.8.8",
            "https://ollama.com",
            "http://172.40.0.1",
        ] {
            assert!(!own(url), "{url}");
        }
    }
}
