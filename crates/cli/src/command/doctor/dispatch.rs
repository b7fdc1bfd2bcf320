//! Checks of dispatch through Restate: the server, its registered workers, and calls in both
//! directions.

use adjutant_restate::{Calls, Diagnosis, NotReached, RestateAddress, WorkerError, diagnose};

use super::{Check, Group};
use crate::config::{Database, Settings};
use crate::store::Store;

const GROUP: Group = Group("dispatch");
/// The setting that turns dispatch on.
const NAME: &str = "serve.dispatch";

/// Checks each part of a call's way; empty if dispatch is not set.
pub(super) async fn checks(
    address: &str,
    settings: &Settings,
    store: Option<&dyn Store>,
) -> Vec<Check> {
    let restate: RestateAddress = match address.parse() {
        Ok(restate) => restate,
        Err(error) => {
            let error: adjutant_restate::InvalidAddress = error;
            return vec![
                GROUP
                    .fail(NAME, error.to_string())
                    .with_remedy("correct --dispatch or serve.dispatch (docs/restate.md)"),
            ];
        }
    };
    let mut checks = vec![database(settings, store).await];
    match diagnose(&restate).await {
        Err(error) => checks.push(not_diagnosed(&error)),
        Ok(found) => {
            checks.push(ingress(&restate, &found));
            checks.extend(admin(&restate, &found));
            checks.extend(worker(&found));
            checks.extend(found.calls.as_ref().map(calls));
        }
    }
    checks
}

/// Checks the database: work continued by a Restate worker has to be found there, and its events
/// have to arrive here.
async fn database(settings: &Settings, store: Option<&dyn Store>) -> Check {
    let name = "database";
    match (&settings.database, store) {
        (Database::Sqlite(_), _) => GROUP.fail(name, "what is in a file cannot go on in another process")
            .because("Restate has conversations go on in any service; all of them need one PostgreSQL")
            .with_remedy("adjutant config set serve.database_url postgres://HOST/DATABASE"),
        (Database::Postgres(_), None) => {
            GROUP.fail(name, "it cannot be opened").with_remedy("see data above")
        }
        (Database::Postgres(_), Some(store)) if store.receives_notifications().await => {
            GROUP.ok(name, "PostgreSQL; the events of a worker arrive where the message was sent, as they come")
        }
        (Database::Postgres(_), Some(_)) => {
            GROUP.warn(name, "answers from another service come as a whole, at their end")
                .because("notifications do not arrive: a pooler that gives every transaction another connection hands none on")
                .with_remedy("adjutant config set database.listen_url postgres://USER@HOST:PORT/DATABASE    (the server itself)")
        }
    }
}

fn not_diagnosed(error: &WorkerError) -> Check {
    let check = GROUP.fail("token_file", error.to_string());
    match error {
        WorkerError::Token { path, .. } => check.with_remedy(format!(
            "write the token into {}, one line, readable for this user",
            path.display()
        )),
        _ => check.with_remedy("install the certificates of authorities (ca-certificates)"),
    }
}

/// Creates a failure for a part of Restate that cannot be reached.
fn not_reached(name: &str, place: &str, wrong: &NotReached, remedy: &str) -> Check {
    let check = GROUP
        .fail(name, format!("{place} does not take requests"))
        .because(wrong);
    match wrong {
        NotReached::Unauthorized(_) => {
            check.with_remedy("a token that it accepts: token_file= in serve.dispatch")
        }
        _ => check.with_remedy(remedy),
    }
}

fn ingress(restate: &RestateAddress, found: &Diagnosis) -> Check {
    match &found.ingress {
        Ok(()) => GROUP.ok("ingress", format!("{} takes calls", restate.ingress())),
        Err(wrong) => not_reached(
            "ingress",
            restate.ingress(),
            wrong,
            "start restate-server, or correct the address in serve.dispatch (restates:// if it has TLS)",
        ),
    }
}

/// Checks the admin API and the workers registered there.
fn admin(restate: &RestateAddress, found: &Diagnosis) -> Vec<Check> {
    let (Some(place), Some(admin)) = (restate.admin(), &found.admin) else {
        return vec![GROUP.ok(
            "admin",
            "admin=none: the workers are registered elsewhere, and no one can be asked about them",
        )];
    };
    match admin {
        Ok(version) => {
            vec![
                GROUP.ok("admin", format!("Restate {version} at {place}")),
                registered(found),
            ]
        }
        Err(wrong) => vec![not_reached(
            "admin",
            place,
            wrong,
            "start restate-server, or say where its admin API is: admin=HOST:PORT in serve.dispatch",
        )],
    }
}

fn registered(found: &Diagnosis) -> Check {
    let name = "registered";
    let known = found.deployed.iter().map(|known| {
        let version = known
            .version
            .as_ref()
            .map(|version| format!(" ({version})"))
            .unwrap_or_default();
        let latest = if known.is_latest {
            ", called"
        } else {
            ", until what runs there has ended"
        };
        format!("{}{version}{latest}", known.url)
    });
    let known: Vec<String> = known.collect();
    let all = known.join("; ");
    let here = found
        .url
        .as_deref()
        .unwrap_or("a port that the system chooses");
    // A worker that accepts signed calls only refuses this process; that is an answer too.
    let answers = matches!(
        found.from_here,
        Some(Ok(()) | Err(NotReached::Unauthorized(_)))
    );
    match found.deployed.iter().find(|known| known.is_here) {
        Some(here) if here.is_latest => GROUP.ok(name, all),
        Some(_) => GROUP.warn(name, all)
            .because("a worker at another address has started later, or took the place of this one while it was gone")
            .with_remedy("one advertise= for all workers, which leads to any of them (docs/restate.md)"),
        None if known.is_empty() && answers => {
            GROUP.fail(name, "Restate knows no worker, though one answers at this address")
                .because("a worker registers itself within seconds; what it cannot do it says on standard error")
                .with_remedy(format!("restate deployments register {here}"))
        }
        None if known.is_empty() => GROUP.warn(name, "Restate knows no worker, and calls none")
            .because("no adjutant serve has run with it yet")
            .with_remedy("adjutant serve    (with this address in serve.dispatch or --dispatch; it registers itself)"),
        None => GROUP.warn(name, format!("{all}; not {here}"))
            .because("Restate calls workers by one address, and this is another")
            .with_remedy("one advertise= for all workers, which leads to any of them (docs/restate.md)"),
    }
}

/// Checks the worker at this address, as it answers this process and Restate.
fn worker(found: &Diagnosis) -> Option<Check> {
    let name = "worker";
    let (url, from_here) = (found.url.as_deref()?, found.from_here.as_ref()?);
    let is_called = found
        .deployed
        .iter()
        .any(|known| known.is_here && known.is_latest);
    Some(match (from_here, &found.from_restate) {
        (_, Some(Ok(()))) => GROUP.ok(name, format!("{url} answers Restate")),
        (Ok(()), None) => GROUP.ok(name, format!("{url} answers")),
        // The worker accepts signed calls only, and this process has no key.
        (Err(NotReached::Unauthorized(_)), None) => GROUP.ok(name,
            format!("{url} answers, and takes signed calls only"),
        ),
        (Ok(()), Some(Err(wrong))) => GROUP.fail(name,
            format!("{url} answers from here, but not when Restate asks"),
        )
        .because(wrong)
        .with_remedy(
            "an address that Restate reaches: advertise=http://HOST:PORT in serve.dispatch",
        ),
        (Err(NotReached::Unauthorized(_)), Some(Err(wrong))) => GROUP.fail(name,
            format!("{url} does not take what Restate signs"),
        )
        .because(wrong)
        .with_remedy("key= in serve.dispatch: the public key that Restate's log shows"),
        (Err(wrong), _) if is_called => GROUP.fail(name,
            format!("Restate calls {url}, and nothing answers there"),
        )
        .because(wrong)
        .with_remedy(
            "adjutant serve, or another one takes over: until then every service does its own work",
        ),
        (Err(wrong), _) => GROUP.warn(name, format!("nothing answers at {url} yet"))
            .because(wrong)
            .with_remedy("adjutant serve"),
    })
}

fn calls(calls: &Result<Calls, NotReached>) -> Check {
    let calls = match calls {
        Ok(calls) => calls,
        Err(wrong) => {
            return GROUP
                .warn("calls", "Restate does not say how many there are")
                .because(wrong)
                .with_remedy("again in some seconds, if Restate has just started; else its log");
        }
    };
    let counted = format!(
        "running {}, waiting {}, timers {}, stuck {}",
        calls.running, calls.waiting, calls.scheduled, calls.stuck
    );
    match calls.stuck {
        0 => GROUP.ok("calls", counted),
        _ => GROUP.warn("calls", counted)
            .because(calls.why.clone().unwrap_or_else(|| "Restate does not say why".to_owned()))
            .with_remedy("adjutant turns list    (what is left to do; a call that fails is given up after two minutes)"),
    }
}
