//! Metrics of the process, named as Prometheus' client libraries name them. Linux only; on other
//! systems there are none.

/// Returns the metrics in Prometheus' text format, without those that cannot be read. They do not
/// go through the recorder, because its counters cannot hold fractions of a second.
#[cfg(target_os = "linux")]
pub(crate) fn render() -> String {
    linux::metrics().iter().map(linux::Metric::render).collect()
}

/// Returns an empty text: these metrics are read from `/proc`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn render() -> String {
    String::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};

    /// A metric without labels. `value` is `None` if it cannot be read.
    pub(super) struct Metric {
        name: &'static str,
        help: &'static str,
        value: Option<f64>,
    }

    impl Metric {
        pub(super) fn render(&self) -> String {
            let Self { name, help, value } = self;
            let Some(value) = value else {
                return String::new();
            };
            let kind = if name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n")
        }
    }

    fn metric(name: &'static str, help: &'static str, value: Option<f64>) -> Metric {
        Metric { name, help, value }
    }

    pub(super) fn metrics() -> [Metric; 6] {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let stat = stat.as_deref().and_then(Stat::parse);
        let from_stat = |value: fn(&Stat) -> f64| stat.as_ref().map(value);
        let open = fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as f64);
        let most = getrlimit(Resource::Nofile)
            .current
            .map(|files| files as f64);
        [
            metric(
                "process_cpu_seconds_total",
                "CPU time of the process, user and system.",
                from_stat(|stat| stat.cpu),
            ),
            metric(
                "process_resident_memory_bytes",
                "Memory of the process that is resident.",
                from_stat(|stat| stat.resident),
            ),
            metric(
                "process_virtual_memory_bytes",
                "Memory of the process that is mapped.",
                from_stat(|stat| stat.mapped),
            ),
            metric(
                "process_start_time_seconds",
                "When the process began, as seconds since 1970 (UTC).",
                stat.as_ref()
                    .and_then(|stat| Some(boot_time()? + stat.started)),
            ),
            metric("process_open_fds", "Files and sockets that are open.", open),
            metric(
                "process_max_fds",
                "Files and sockets that may be open.",
                most,
            ),
        ]
    }

    /// Fields of `/proc/self/stat`: CPU time in seconds, memory in bytes. Source: proc_pid_stat(5).
    struct Stat {
        cpu: f64,
        /// Seconds between the machine's start and the process's.
        started: f64,
        mapped: f64,
        resident: f64,
    }

    impl Stat {
        fn parse(stat: &str) -> Option<Self> {
            // The program's name, field 2, is in parentheses and may itself contain some. What
            // follows the last one starts with field 3.
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
            let seconds = |ticks: f64| ticks / clock_ticks_per_second() as f64;
            Some(Self {
                cpu: seconds(field(14)? + field(15)?),
                started: seconds(field(22)?),
                mapped: field(23)?,
                resident: field(24)? * page_size() as f64,
            })
        }
    }

    /// Reads the time at which the machine started, in seconds since 1970.
    fn boot_time() -> Option<f64> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        stat.lines()
            .find_map(|line| line.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_program_name_may_contain_parentheses() {
            let behind = "S 1 1 1 0 -1 0 0 0 0 0 300 200 0 0 20 0 1 0 5000 4096 2 0";
            for name in ["adjutant", "a) S 9 (b", ""] {
                let stat = Stat::parse(&format!("7 ({name}) {behind}")).unwrap();
                let ticks = clock_ticks_per_second() as f64;
                assert_eq!(
                    (stat.cpu, stat.started),
                    (500.0 / ticks, 5000.0 / ticks),
                    "{name}"
                );
                assert_eq!(
                    (stat.mapped, stat.resident),
                    (4096.0, 2.0 * page_size() as f64),
                    "{name}"
                );
            }
            assert!(Stat::parse("").is_none() && Stat::parse("7 (a) S 1").is_none());
        }

        #[test]
        fn this_process_has_all_of_them() {
            for metric in metrics() {
                let least = if metric.name == "process_start_time_seconds" {
                    1e9
                } else {
                    0.0
                };
                assert!(metric.value.unwrap() >= least, "{}", metric.render());
            }
            let text = crate::process::render();
            assert!(
                text.contains(
                    "\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total "
                ),
                "{text}"
            );
            assert!(text.contains("# TYPE process_open_fds gauge\n"), "{text}");
        }
    }
}
