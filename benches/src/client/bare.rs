//! HTTP clients without an agent: they send the request bodies that Adjutant sends for a turn, and
//! read the answers to the end.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use url::Url;

use super::{Setup, Worker};
use crate::Result;

/// A worker with its own hyper connection.
pub(super) struct OverHyper {
    connection: SendRequest<Full<Bytes>>,
    path: String,
    host: String,
    bodies: Vec<Bytes>,
}

/// Opens a connection for each worker.
pub(super) async fn over_hyper(setup: &Setup) -> Result<Vec<OverHyper>> {
    let url: Url = setup.address.parse()?;
    let host = url.authority().to_owned();
    let mut workers = Vec::new();
    for _ in 0..setup.at_once {
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        workers.push(OverHyper {
            connection: sender,
            path: url.path().to_owned(),
            host: host.clone(),
            bodies: setup.bodies.iter().cloned().map(Bytes::from).collect(),
        });
    }
    Ok(workers)
}

impl Worker for OverHyper {
    async fn turn(&mut self) -> Result<()> {
        for body in &self.bodies {
            self.connection.ready().await?;
            let request = Request::builder()
                .method(Method::POST)
                .uri(&self.path)
                .header(HOST, &self.host)
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(body.clone()))?;
            let response = self.connection.send_request(request).await?;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            if !status.is_success() || answer.is_empty() {
                return Err(format!("{status}: {} bytes", answer.len()).into());
            }
        }
        Ok(())
    }
}

/// A worker that shares one reqwest client with the others.
pub(super) struct OverReqwest {
    client: reqwest::Client,
    url: Url,
    token: Option<String>,
    bodies: Vec<Bytes>,
    /// Replaces `THREAD` in a body.
    thread: String,
}

/// Creates the workers with a common client.
pub(super) fn over_reqwest(setup: &Setup) -> Result<Vec<OverReqwest>> {
    // A proxy from the environment must not take part in requests to this machine.
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url: Url = setup.address.parse()?;
    let worker = |_| {
        let thread = uuid::Uuid::now_v7().to_string();
        OverReqwest {
            client: client.clone(),
            url: url.clone(),
            token: setup.token.clone(),
            bodies: setup
                .bodies
                .iter()
                .map(|body| body.replace("THREAD", &thread).into())
                .collect(),
            thread,
        }
    };
    Ok((0..setup.at_once).map(worker).collect())
}

impl Worker for OverReqwest {
    async fn turn(&mut self) -> Result<()> {
        for body in &self.bodies {
            let mut request = self
                .client
                .post(self.url.clone())
                .header(CONTENT_TYPE, "application/json");
            if let Some(token) = &self.token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let response = request.body(body.clone()).send().await?;
            let status = response.status();
            let answer = response.bytes().await?;
            if !status.is_success() || answer.is_empty() {
                let words = String::from_utf8_lossy(&answer);
                return Err(format!("{status} in {}: {words}", self.thread).into());
            }
        }
        Ok(())
    }
}
