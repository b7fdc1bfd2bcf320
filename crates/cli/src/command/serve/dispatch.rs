//! `--dispatch`: the Restate worker of the service, if that feature is compiled in.

#[cfg(not(feature = "restate"))]
mod without {
    use std::convert::Infallible;

    use adjutant_core::CancellationToken;
    use adjutant_runtime::Agent;

    use crate::error::CliError;
    use crate::terminal::screen::Screen;

    /// Cannot be created in builds without Restate.
    pub(in crate::command::serve) struct Worker(Infallible);

    impl Worker {
        pub(in crate::command::serve) async fn bind(_address: &str) -> Result<Self, CliError> {
            Err(CliError::configuration("this adjutant was built without Restate")
                .or_try("without --dispatch: replicas on one PostgreSQL share the work by themselves")
                .or_try("cargo build --release --features restate"))
        }

        pub(in crate::command::serve) fn dispatching(&self, _agent: &Agent) -> Agent {
            match self.0 {}
        }

        pub(in crate::command::serve) fn url(&self) -> String {
            match self.0 {}
        }

        pub(in crate::command::serve) async fn run(
            self,
            _agent: Agent,
            _stop: CancellationToken,
            _screen: &Screen,
        ) {
            match self.0 {}
        }
    }
}

#[cfg(feature = "restate")]
mod with {
    use adjutant_core::CancellationToken;
    use adjutant_restate::{RestateAddress, WorkerError};
    use adjutant_runtime::Agent;
    use tokio::sync::mpsc;

    use crate::error::CliError;
    use crate::terminal::screen::Screen;

    /// The endpoint that Restate calls.
    pub(in crate::command::serve) struct Worker(adjutant_restate::Worker);

    /// Converts the error and adds a remedy.
    pub(in crate::command::serve) fn not_bound(error: &WorkerError) -> CliError {
        let shown = CliError::configuration(error.to_string());
        match error {
            WorkerError::Bind { .. } => shown.or_try(
                "another port: --dispatch 'restate://HOST:PORT?listen=127.0.0.1:9081'; port 0 takes a free one",
            ),
            WorkerError::Token { path, .. } => shown
                .or_try(format!("write the token into {}, one line, readable for this user", path.display()))
                .or_try("no token_file= in --dispatch, if nothing asks for a token"),
            WorkerError::Client(_) => shown.or_try("install the certificates of authorities (ca-certificates)"),
            _ => shown,
        }
    }

    impl Worker {
        /// Binds the endpoint's address.
        pub(in crate::command::serve) async fn bind(address: &str) -> Result<Self, CliError> {
            let address: RestateAddress = address.parse().map_err(|error| {
                CliError::configuration(format!("--dispatch: {error}")).or_try("docs/restate.md")
            })?;
            let worker = adjutant_restate::Worker::bind(address)
                .await
                .map_err(|error| not_bound(&error))?;
            Ok(Self(worker))
        }

        /// Returns an agent that dispatches its inputs to Restate.
        pub(in crate::command::serve) fn dispatching(&self, agent: &Agent) -> Agent {
            agent.with_dispatch(self.0.dispatch())
        }

        pub(in crate::command::serve) fn url(&self) -> String {
            self.0.url().to_owned()
        }

        /// Serves Restate's calls until `stop` is cancelled.
        pub(in crate::command::serve) async fn run(
            self,
            agent: Agent,
            stop: CancellationToken,
            screen: &Screen,
        ) {
            // The callback belongs to the worker's tasks, which cannot borrow the screen.
            let (events, mut received) = mpsc::unbounded_channel();
            let working = self.0.run(agent, stop, move |event| {
                // The receiver is dropped only when the service ends.
                let _ = events.send(event.to_string());
            });
            let showing = async {
                while let Some(event) = received.recv().await {
                    screen.note(&event);
                }
                // The worker still runs when it has dropped its callback.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = working => {}
                () = showing => {}
            }
        }
    }
}

#[cfg(feature = "restate")]
pub(super) use with::Worker;
#[cfg(not(feature = "restate"))]
pub(super) use without::Worker;
