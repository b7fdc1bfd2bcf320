//! Figures of the process, by the names that Prometheus's own client libraries give them. On Linux;
//! elsewhere there are none.

/// Returns the figures as Prometheus reads them. They are written here because one of them counts
/// fractions, which the recorder's counters do not. What cannot be read is left out.
#[cfg(target_os = "linux")]
pub(crate) fn text() -> String {
    linux::figures().iter().map(linux::Figure::text).collect()
}

/// There are none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn text() -> String {
    String::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};

    /// A figure without labels. `None`: it cannot be read.
    pub(super) struct Figure {
        name: &'static str,
        help: &'static str,
        value: Option<f64>,
    }

    impl Figure {
        pub(super) fn text(&self) -> String {
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

    fn figure(name: &'static str, help: &'static str, value: Option<f64>) -> Figure {
        Figure { name, help, value }
    }

    pub(super) fn figures() -> [Figure; 6] {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let stat = stat.as_deref().and_then(Stat::read);
        let of = |figure: fn(&Stat) -> f64| stat.as_ref().map(figure);
        let open = fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as f64);
        let most = getrlimit(Resource::Nofile)
            .current
            .map(|files| files as f64);
        [
            figure(
                "process_cpu_seconds_total",
                "CPU time of the process, user and system.",
                of(|stat| stat.cpu),
            ),
            figure(
                "process_resident_memory_bytes",
                "Memory of the process that is resident.",
                of(|stat| stat.resident),
            ),
            figure(
                "process_virtual_memory_bytes",
                "Memory of the process that is mapped.",
                of(|stat| stat.mapped),
            ),
            figure(
                "process_start_time_seconds",
                "When the process began, as seconds since 1970 (UTC).",
                stat.as_ref()
                    .and_then(|stat| Some(boot_time()? + stat.started)),
            ),
            figure("process_open_fds", "Files and sockets that are open.", open),
            figure(
                "process_max_fds",
                "Files and sockets that may be open.",
                most,
            ),
        ]
    }

    /// Figures from `/proc/self/stat`: CPU time in seconds, memory in bytes. Source:
    /// proc_pid_stat(5).
    struct Stat {
        cpu: f64,
        /// Seconds after the machine's start.
        started: f64,
        mapped: f64,
        resident: f64,
    }

    impl Stat {
        fn read(stat: &str) -> Option<Self> {
            // The name of the program is in brackets, and may have anything in it. Behind it is
            // field 3.
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
        fn a_program_may_be_called_anything() {
            let behind = "S 1 1 1 0 -1 0 0 0 0 0 300 200 0 0 20 0 1 0 5000 4096 2 0";
            for name in ["adjutant", "a) S 9 (b", ""] {
                let stat = Stat::read(&format!("7 ({name}) {behind}")).unwrap();
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
            assert!(Stat::read("").is_none() && Stat::read("7 (a) S 1").is_none());
        }

        #[test]
        fn this_process_has_all_of_them() {
            for figure in figures() {
                let least = if figure.name == "process_start_time_seconds" {
                    1e9
                } else {
                    0.0
                };
                assert!(figure.value.unwrap() >= least, "{}", figure.text());
            }
            let text = crate::process::text();
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
