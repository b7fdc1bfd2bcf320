//! Checks of the environment: terminal, editor, clock, certificates, proxy.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use url::Url;

use super::{Check, Group};
use crate::clock;
use crate::config::Sources;

const GROUP: Group = Group("machine");
const NETWORK: Group = Group("network");

/// Time that a proxy may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(3);

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
        Some((_, value)) if utf8(value) => GROUP.ok("terminal", format!("{shown} · {value}")),
        Some((name, value)) => GROUP
            .warn("terminal", shown)
            .because(format!(
                "{name} is {value}: what is not English may not be shown"
            ))
            .with_remedy(format!("export {name}=C.UTF-8")),
        None => GROUP
            .warn("terminal", shown)
            .because("no language is set: what is not English may not be shown")
            .with_remedy("export LANG=C.UTF-8"),
    }
}

/// Checks that the editor exists, if one is set.
fn editor<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Check {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    let Some((name, command)) = named else {
        return GROUP.ok(
            "editor",
            "no editor is set (EDITOR), so /edit is not available",
        );
    };
    let program = command.split_whitespace().next().unwrap_or_default();
    match find(program, variable("PATH").unwrap_or_default()) {
        Some(found) => GROUP.ok(
            "editor",
            format!("{name} is {command} ({})", found.display()),
        ),
        None => GROUP
            .fail("editor", format!("{name} is {command}, which is not there"))
            .because("/edit and adjutant config edit open it")
            .with_remedy(format!("export {name}=PROGRAM, or unset {name}")),
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
        return GROUP
            .fail("clock", format!("it says {shown}"))
            .because("with a wrong clock no certificate is believed, and notes get wrong dates")
            .with_remedy("timedatectl set-ntp true");
    }
    match TimeZone::try_system() {
        Ok(zone) => {
            let zone = zone.iana_name().unwrap_or("local time").to_owned();
            GROUP.ok("clock", format!("{shown} · {zone}"))
        }
        Err(error) => GROUP
            .warn("clock", format!("{shown} · the time zone is not known"))
            .because(error)
            .with_remedy("export TZ=Europe/Berlin    (yours)"),
    }
}

/// Checks that certificate files exist, if they are set.
fn certificates<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Vec<Check> {
    let wrong = |name: &str| {
        let value = variable(name)?;
        let path = Path::new(value);
        let is_folder = name == "SSL_CERT_DIR";
        let exists = if is_folder {
            path.is_dir()
        } else {
            path.is_file()
        };
        // A file that is not ASCII may be DER, which has no header to look for.
        let readable = is_folder
            || std::fs::read(path).is_ok_and(|bytes| {
                bytes.windows(11).any(|window| window == b"CERTIFICATE") || !bytes.is_ascii()
            });
        let problem = match (exists, readable) {
            (true, true) => return None,
            (true, false) => "holds no certificate",
            (false, _) => "is not there",
        };
        let check = NETWORK.fail(
            "certificates",
            format!("{name} is {value}, which {problem}"),
        );
        Some(
            check
                .because("no https address is believed without certificates")
                .with_remedy(format!(
                    "unset {name}, or set it to the file of your certificates"
                )),
        )
    };
    ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .filter_map(wrong)
        .take(1)
        .collect()
}

fn proxy<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<Check> {
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
    let wrong = set.iter().find_map(|(name, value)| {
        let cause = try_proxy(value).err()?;
        // The address may contain a password, so it is not shown.
        let check = NETWORK
            .fail("proxy", format!("{name} cannot be used"))
            .because(cause);
        Some(check.with_remedy(format!(
            "unset {name}, or correct it: {name}=http://HOST:PORT"
        )))
    });
    let used = || Some(NETWORK.ok("proxy", format!("{} is used", set.first()?.0)));
    wrong.or_else(used)
}

/// Connects to a proxy to check that something listens there.
///
/// # Errors
/// The reason why it cannot be used.
fn try_proxy(address: &str) -> Result<(), String> {
    let with_scheme = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    let url = Url::parse(&with_scheme).map_err(|error| error.to_string())?;
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or("it names no host")?;
    // SOCKS proxies, whose scheme has no default port in the URL standard, listen at 1080.
    let port = url.port_or_known_default().unwrap_or(1080);
    connect(host, port, PATIENCE).map_err(|error| format!("{host}:{port}: {error}"))
}

/// Connects to the first address of a host that accepts a connection, and closes it.
///
/// # Errors
/// The host has no address, or the error of the last one.
pub(crate) fn connect(host: &str, port: u16, patience: Duration) -> io::Result<()> {
    // A URL has an IPv6 address in brackets, which the resolver does not take.
    let host = host.trim_matches(['[', ']']);
    let mut last = io::Error::other("it has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
