//! Gauges of the process: database connections and MCP servers.

use std::sync::Arc;

use adjutant_mcp::client::{Health, ServerReport, Servers};
use adjutant_service::{Gauge, Gauges};
use adjutant_store::Load;

use crate::store::Store;

/// Creates gauges that are read at each scrape.
pub(super) fn gauges(store: Arc<dyn Store>, servers: &Servers) -> Gauges {
    let reports = servers.reporter();
    Arc::new(move || {
        store_gauges(store.current_load())
            .into_iter()
            .chain(server_gauges(reports()))
            .collect()
    })
}

fn store_gauges(load: Load) -> Vec<Gauge> {
    let gauge = |name, help, value: u32| Gauge {
        name,
        help,
        labels: Vec::new(),
        value: value.into(),
    };
    let mut gauges = vec![gauge(
        "adjutant_store_calls_waiting",
        "Calls that wait for a connection to the database, or for the thread that writes to its file.",
        load.waiting,
    )];
    if let Some(max) = load.connections_max {
        let (name, help) = (
            "adjutant_store_connections",
            "Connections to the database that are open, by state.",
        );
        let states = [
            ("busy", load.connections_busy),
            ("idle", load.connections_idle),
        ];
        gauges.extend(states.map(|(state, count)| Gauge {
            name,
            help,
            labels: vec![("state", state.to_owned())],
            value: count.into(),
        }));
        gauges.push(gauge(
            "adjutant_store_connections_max",
            "Connections to the database that may be open.",
            max,
        ));
    }
    gauges
}

/// Returns a gauge for each enabled MCP server.
fn server_gauges(reports: Vec<ServerReport>) -> Vec<Gauge> {
    // A disabled server is down on purpose, and an alarm on its 0 would never end.
    let reports = reports
        .into_iter()
        .filter(|server| server.health != Health::Disabled);
    reports
        .map(|server| Gauge {
            name: "adjutant_mcp_server_up",
            help: "Whether an MCP server of the configuration answers (1).",
            labels: vec![("server", server.name.to_string())],
            value: f64::from(u8::from(server.health == Health::Connected)),
        })
        .collect()
}
