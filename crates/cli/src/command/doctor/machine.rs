//! Checks of the environment: terminal, editor, clock, certificates, proxy.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use url::Url;

use super::Check;
use crate::clock;
use crate::config::Sources;

const GROUP: &str = "machine";

/// The clock is wrong before this time, in seconds since 1970: 2026-01-01.
const WRITTEN: i64 = 1_767_225_600;
/// The clock is wrong after this time, in seconds since 1970: 2100-01-01.
const FAR: i64 = 4_102_444_800;

/// Runs the checks that depend on no settings.
pub(super) fn checks(sources: &Sources) -> Vec<Check> {
    let variable = |name: &str| {
        sources
            .variables
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    };
    let mut checks = vec![terminal(variable), editor(variable), clock()];
    checks.extend(certificates(variable));
    checks.extend(proxy(variable));
    checks
}

fn terminal<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Check {
    // The C library uses the first variable that is set.
    let language = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    let utf8 = |value: &str| {
        let value = value.to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    };
    let kind = variable("TERM").unwrap_or("unknown");
    let colours = if variable("NO_COLOR").is_some() || kind == "dumb" {
        "no colours"
    } else {
        "colours"
    };
    let shown = format!("{kind} · {colours}");
    match language {
        Some((_, value)) if utf8(value) => {
            Check::ok(GROUP, "terminal", format!("{shown} · {value}"))
        }
        Some((name, value)) => Check::warn(GROUP, "terminal", shown)
            .because(format!(
                "{name} is {value}: what is not English may not be shown"
            ))
            .with_remedy(format!("export {name}=C.UTF-8")),
        None => Check::warn(GROUP, "terminal", shown)
            .because("no language is set: what is not English may not be shown")
            .with_remedy("export LANG=C.UTF-8"),
    }
}

/// Checks that the editor exists, if one is set.
fn editor<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Check {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    let path = variable("PATH").unwrap_or_default();
    match named {
        Some((name, words)) => {
            let program = words.split_whitespace().next().unwrap_or_default();
            match find(program, path) {
                Some(found) => Check::ok(
                    GROUP,
                    "editor",
                    format!("{name} is {words} ({})", found.display()),
                ),
                None => Check::fail(
                    GROUP,
                    "editor",
                    format!("{name} is {words}, which is not there"),
                )
                .because("/edit and adjutant config edit open it")
                .with_remedy(format!("export {name}=PROGRAM, or unset {name}")),
            }
        }
        None => Check::ok(
            GROUP,
            "editor",
            "none is named (EDITOR): /edit is not there",
        ),
    }
}

/// Finds a program by its path, or in `PATH`.
fn find(program: &str, path: &str) -> Option<PathBuf> {
    if program.is_empty() {
        return None;
    }
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn clock() -> Check {
    let now = clock::now();
    let seconds = now.as_second();
    let shown = now.strftime("%Y-%m-%d %H:%MZ").to_string();
    if !(WRITTEN..FAR).contains(&seconds) {
        return Check::fail(GROUP, "clock", format!("it says {shown}"))
            .because("with a wrong clock no certificate is believed, and notes get wrong dates")
            .with_remedy("timedatectl set-ntp true");
    }
    match TimeZone::try_system() {
        Ok(zone) => {
            let zone = zone.iana_name().unwrap_or("local time").to_owned();
            Check::ok(GROUP, "clock", format!("{shown} · {zone}"))
        }
        Err(error) => Check::warn(
            GROUP,
            "clock",
            format!("{shown} · the time zone is not known"),
        )
        .because(error.to_string())
        .with_remedy("export TZ=Europe/Berlin    (yours)"),
    }
}

/// Checks that certificate files exist, if they are set.
fn certificates<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Vec<Check> {
    let wrong = |name: &str| {
        let value = variable(name)?;
        let path = Path::new(value);
        let right = if name == "SSL_CERT_DIR" {
            path.is_dir()
        } else {
            path.is_file()
        };
        let readable = std::fs::read(path).map_or(name == "SSL_CERT_DIR", |bytes| {
            bytes
                .windows(11)
                .any(|window| window == b"CERTIFICATE".as_slice())
                || !bytes.is_ascii()
        });
        (!right || !readable).then(|| {
            let what = if right {
                "holds no certificate"
            } else {
                "is not there"
            };
            Check::fail(
                "network",
                "certificates",
                format!("{name} is {value}, which {what}"),
            )
            .because("no https address is believed without certificates")
            .with_remedy(format!(
                "unset {name}, or set it to the file of your certificates"
            ))
        })
    };
    ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .filter_map(wrong)
        .take(1)
        .collect()
}

fn proxy<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Vec<Check> {
    let names = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let set: Vec<(&str, &str)> = names
        .into_iter()
        .filter_map(|name| Some((name, variable(name)?)))
        .collect();
    let check = set.iter().find_map(|(name, value)| {
        let text = if value.contains("://") {
            (*value).to_owned()
        } else {
            format!("http://{value}")
        };
        let wrong = |cause: String| {
            // The address may contain a password, so it is not shown.
            Check::fail("network", "proxy", format!("{name} cannot be used"))
                .because(cause)
                .with_remedy(format!(
                    "unset {name}, or correct it: {name}=http://HOST:PORT"
                ))
        };
        let url = match Url::parse(&text) {
            Ok(url) if url.has_host() => url,
            Ok(_) => return Some(wrong("it names no host".to_owned())),
            Err(error) => return Some(wrong(error.to_string())),
        };
        let (host, port) = (
            url.host_str()?.to_owned(),
            url.port_or_known_default().unwrap_or(1080),
        );
        match reachable(&host, port) {
            Ok(()) => None,
            Err(cause) => Some(wrong(format!("{host}:{port}: {cause}"))),
        }
    });
    match (check, set.first()) {
        (Some(check), _) => vec![check],
        (None, Some((name, _))) => vec![Check::ok("network", "proxy", format!("{name} is used"))],
        (None, None) => Vec::new(),
    }
}

/// Connects to a port to check that something listens there.
fn reachable(host: &str, port: u16) -> Result<(), String> {
    use std::net::{TcpStream, ToSocketAddrs as _};
    let host = host.trim_matches(['[', ']']);
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut last = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, std::time::Duration::from_secs(3)) {
            Ok(_) => return Ok(()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}
