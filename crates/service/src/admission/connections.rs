//! The open connections: the phase each is in, and which one is closed when a limit is reached.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection_limits::ConnectionLimits;
use crate::metrics::Metrics;

/// A request whose body has paused for this long may be closed to make space: no work was started
/// for it. So may one whose response was not read for this long.
const PAUSE: Duration = Duration::from_secs(1);

/// Time in which a new connection may still start a request during a shutdown: what the client sent
/// may be on its way.
const ARRIVAL: Duration = Duration::from_secs(1);

/// Registry of the open connections.
pub(crate) struct Connections {
    limits: ConnectionLimits,
    /// Addresses of proxies, which the limit per address does not apply to.
    proxies: Vec<IpNet>,
    registry: Mutex<Registry>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Registry {
    next: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

/// The limit that a refused connection exceeded. All others have a request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The limit of all connections.
    All,
    /// The limit of one address.
    PerAddress,
}

impl LimitReached {
    /// Returns the log message for operators.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::All => {
                "connections are refused: as many as there may be have a request in progress (serve.connections)"
            }
            Self::PerAddress => {
                "connections are refused: one address has as many requests in progress as it may have connections \
                 (serve.connections_per_address; a proxy of yours belongs in serve.proxy_peers)"
            }
        }
    }
}

/// A connection's entry in the registry, which is removed when dropped.
pub(super) struct Slot {
    number: u64,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// State of one connection.
pub(crate) struct Connection {
    /// The address it counts for; `None` for proxies and this machine, which are not limited.
    address: Option<IpAddr>,
    limits: ConnectionLimits,
    at: Mutex<Activity>,
    changed: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    phase: Phase,
    since: Instant,
    /// Time since which the client has not read the bytes to be sent.
    stalled: Option<Instant>,
}

/// Phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Opened, and no byte received.
    New,
    /// Receiving a request's head.
    Head,
    /// A request is being handled.
    Busy,
    /// A request is being handled, and the handler waits for the rest of its body.
    Body,
    /// The end of a response is being sent.
    Sending,
    /// Waiting for the next request.
    Idle,
    /// About to be closed.
    Gone,
}

/// A request in progress. Dropped when its response is complete or was cancelled.
pub(super) struct RequestGuard(Arc<Connection>);

impl Connections {
    /// Creates an empty registry. Connections from `proxies` and from this machine, where a proxy
    /// may run, are not limited per address.
    pub(crate) fn new(
        limits: ConnectionLimits,
        proxies: Vec<IpNet>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            limits,
            proxies,
            registry: Mutex::default(),
            metrics,
        })
    }

    /// Registers a connection. If a limit is reached, the connection that was idle for longest is
    /// closed instead; without an idle one, a request whose body does not arrive.
    ///
    /// # Errors
    /// [`LimitReached`] if all connections have a request in progress.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        now: Instant,
    ) -> Result<Slot, LimitReached> {
        let address = self.counted(peer);
        // One lock for both checks, so that two connections cannot take the same last place.
        let mut registry = lock(&self.registry);
        let of_address =
            |connection: &Connection| address.is_some() && connection.address == address;
        let open = registry
            .connections
            .values()
            .filter(|connection| of_address(connection))
            .count();
        if open >= bound(self.limits.per_address) && !registry.close_idlest(now, of_address) {
            self.metrics.connection_closed("address");
            return Err(LimitReached::PerAddress);
        }
        if registry.connections.len() >= bound(self.limits.connections)
            && !registry.close_idlest(now, |_| true)
        {
            self.metrics.connection_closed("full");
            return Err(LimitReached::All);
        }
        let number = registry.next;
        registry.next += 1;
        let connection = Arc::new(Connection {
            address,
            limits: self.limits,
            at: Mutex::new(Activity {
                phase: Phase::New,
                since: now,
                stalled: None,
            }),
            changed: Notify::new(),
            metrics: self.metrics.clone(),
        });
        registry.connections.insert(number, connection.clone());
        self.metrics.connection_opened();
        Ok(Slot {
            number,
            connection,
            connections: self.clone(),
        })
    }

    /// Closes the connection that was idle for longest.
    pub(super) fn close_idlest(&self) {
        lock(&self.registry).close_idlest(Instant::now(), |_| true);
    }

    /// Returns the address that a connection counts for.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        // An IPv4 address may arrive in its IPv6 form.
        let peer = peer.to_canonical();
        if peer.is_loopback() || self.proxies.iter().any(|network| network.contains(&peer)) {
            return None;
        }
        Some(match peer {
            IpAddr::V4(_) => peer,
            // One customer usually has a whole /64 network.
            IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & (u128::MAX << 64)).into(),
        })
    }
}

impl Registry {
    fn close_idlest(&mut self, now: Instant, which: impl Fn(&Connection) -> bool) -> bool {
        // Connections without a request come first, then the longest idle.
        let mut waiting: Vec<(bool, Instant, u64)> = self
            .connections
            .iter()
            .filter(|(_, connection)| which(connection))
            .map(|(number, connection)| (*number, *lock(&connection.at)))
            .filter(|(_, at)| at.may_go(now))
            .map(|(number, at)| (at.has_request(), at.stalled.unwrap_or(at.since), number))
            .collect();
        waiting.sort_unstable();
        // One of them may start a request at this moment; then the next one is closed.
        let gone = waiting.into_iter().find(|(.., number)| {
            self.connections
                .get(number)
                .is_some_and(|connection| connection.close_idlest(now))
        });
        gone.is_some_and(|(.., number)| self.connections.remove(&number).is_some())
    }
}

impl Slot {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A connection that was closed to make space is no longer in the registry. Numbers are not
        // reused, so this removes no other.
        lock(&self.connections.registry)
            .connections
            .remove(&self.number);
        self.connections.metrics.connection_ended();
    }
}

impl Activity {
    /// Returns true if closing the connection loses no work, or if it waits for its client.
    fn may_go(self, now: Instant) -> bool {
        let is_stalled = self
            .stalled
            .is_some_and(|since| now.duration_since(since) >= PAUSE);
        match self.phase {
            Phase::New | Phase::Head | Phase::Idle => true,
            Phase::Body => is_stalled || now.duration_since(self.since) >= PAUSE,
            Phase::Busy | Phase::Sending => is_stalled,
            Phase::Gone => false,
        }
    }

    fn has_request(self) -> bool {
        matches!(self.phase, Phase::Busy | Phase::Body | Phase::Sending)
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }
}

impl Connection {
    /// Records that bytes were received.
    pub(super) fn bytes_received(&self) {
        let mut at = lock(&self.at);
        match at.phase {
            // The time limit of the first head started with the connection.
            Phase::New => at.phase = Phase::Head,
            Phase::Idle => {
                at.enter(Phase::Head);
                self.changed.notify_one();
            }
            Phase::Head | Phase::Busy | Phase::Body | Phase::Sending | Phase::Gone => {}
        }
    }

    /// Records whether a handler is waiting for the request's body.
    pub(crate) fn set_waiting_for_body(&self, waits: bool) {
        let mut at = lock(&self.at);
        match (at.phase, waits) {
            (Phase::Busy, true) => at.enter(Phase::Body),
            (Phase::Body, false) => at.phase = Phase::Busy,
            _ => {}
        }
    }

    /// Records whether the client reads the response.
    pub(super) fn set_reading(&self, takes: bool) {
        let mut at = lock(&self.at);
        match (at.stalled, takes) {
            (Some(_), true) => at.stalled = None,
            (None, false) => {
                // The task that serves the connection sleeps until the old deadline; it is woken
                // below.
                at.stalled = Some(Instant::now());
                self.changed.notify_one();
            }
            _ => {}
        }
    }

    /// Records that everything was sent.
    pub(super) fn flushed(&self) {
        self.transition(Phase::Sending, Phase::Idle);
    }

    /// Starts a request, unless the connection is about to be closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<RequestGuard> {
        let mut at = lock(&self.at);
        if at.phase == Phase::Gone {
            return None;
        }
        at.phase = Phase::Busy;
        Some(RequestGuard(self.clone()))
    }

    /// Returns the time at which the connection times out, or `None` while the service has to act.
    /// `leaving`: a shutdown has started.
    pub(super) fn deadline(&self, leaving: bool) -> Option<Instant> {
        self.deadline_at(*lock(&self.at), leaving)
    }

    fn deadline_at(&self, at: Activity, leaving: bool) -> Option<Instant> {
        let of_phase = match at.phase {
            Phase::New if leaving => Some(at.since + ARRIVAL),
            Phase::New | Phase::Head => Some(at.since + self.limits.header_timeout),
            Phase::Idle => Some(at.since + self.limits.idle_timeout),
            // The service has to act, not the client; a body has timeouts of its own.
            Phase::Busy | Phase::Body | Phase::Sending => None,
            Phase::Gone => Some(at.since),
        };
        let of_stall = at.stalled.map(|since| since + self.limits.idle_timeout);
        [of_phase, of_stall].into_iter().flatten().min()
    }

    /// Waits until the deadline may have changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns true if the connection has to be closed. `leaving`: a shutdown has started.
    pub(super) fn is_over(&self, now: Instant, leaving: bool) -> bool {
        let mut at = lock(&self.at);
        // During a shutdown there is no next request to wait for.
        if leaving && at.phase == Phase::Idle {
            at.phase = Phase::Gone;
        }
        if at.phase != Phase::Gone
            && self
                .deadline_at(*at, leaving)
                .is_some_and(|deadline| deadline <= now)
        {
            self.metrics.connection_closed("time_out");
            at.phase = Phase::Gone;
        }
        at.phase == Phase::Gone
    }

    fn close_idlest(&self, now: Instant) -> bool {
        let mut at = lock(&self.at);
        let may_go = at.may_go(now);
        if may_go {
            at.phase = Phase::Gone;
            self.metrics.connection_closed("made_room");
            self.changed.notify_one();
        }
        may_go
    }

    fn transition(&self, from: Phase, to: Phase) {
        let mut at = lock(&self.at);
        if at.phase == from {
            at.enter(to);
            self.changed.notify_one();
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.set_waiting_for_body(false);
        self.0.transition(Phase::Busy, Phase::Sending);
    }
}

fn bound(number: std::num::NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use super::*;

    fn connections(connections: u32, per_address: u32) -> Arc<Connections> {
        let bound = |number| NonZeroU32::new(number).unwrap();
        let limits = ConnectionLimits {
            connections: bound(connections),
            per_address: bound(per_address),
            ..ConnectionLimits::default()
        };
        Connections::new(
            limits,
            vec!["10.0.0.0/24".parse().unwrap()],
            Arc::new(Metrics::new()),
        )
    }

    fn admit(
        connections: &Arc<Connections>,
        peer: &str,
        second: u64,
        start: Instant,
    ) -> Result<Slot, LimitReached> {
        connections.admit(peer.parse().unwrap(), start + Duration::from_secs(second))
    }

    fn is_gone(slot: &Slot) -> bool {
        lock(&slot.connection.at).phase == Phase::Gone
    }

    #[tokio::test]
    async fn the_longest_idle_connection_is_closed_and_no_request_is_cut() {
        let (connections, start) = (connections(3, 3), Instant::now());
        let [busy, old, young] =
            [0, 1, 2].map(|second| admit(&connections, "192.0.2.1", second, start).unwrap());
        let asked = busy.connection().begin().unwrap();
        let fourth = admit(&connections, "192.0.2.2", 3, start).unwrap();
        assert_eq!(
            [&busy, &old, &young, &fourth].map(is_gone),
            [false, true, false, false]
        );
        assert!(
            old.connection().begin().is_none(),
            "nothing is begun on a connection that has to go"
        );
        let _others = [
            young.connection().begin().unwrap(),
            fourth.connection().begin().unwrap(),
        ];
        assert_eq!(
            admit(&connections, "192.0.2.2", 4, start).err(),
            Some(LimitReached::All)
        );
        drop(asked);
        assert_eq!(
            admit(&connections, "192.0.2.2", 4, start).err(),
            Some(LimitReached::All),
            "its end was not sent yet"
        );
        busy.connection().flushed();
        let _fifth = admit(&connections, "192.0.2.2", 4, start).unwrap();
        assert!(is_gone(&busy));
        drop((busy, old));
        assert_eq!(
            lock(&connections.registry).connections.len(),
            3,
            "whoever has lost its slot frees no other"
        );
    }

    #[tokio::test]
    async fn a_stalled_body_is_closed_when_no_connection_is_idle() {
        let (connections, start) = (connections(2, 2), Instant::now());
        let slots = [0, 0].map(|second| admit(&connections, "192.0.2.1", second, start).unwrap());
        let _requests = slots
            .each_ref()
            .map(|slot| slot.connection().begin().unwrap());
        slots[1].connection().set_waiting_for_body(true);
        assert_eq!(
            admit(&connections, "192.0.2.2", 0, start).err(),
            Some(LimitReached::All),
            "it may be on its way"
        );
        let third = admit(&connections, "192.0.2.2", 9, start).unwrap();
        assert_eq!(slots.each_ref().map(is_gone), [false, true]);
        let _request = third.connection().begin().unwrap();
        third.connection().set_waiting_for_body(true);
        third.connection().set_waiting_for_body(false);
        assert_eq!(
            admit(&connections, "192.0.2.2", 99, start).err(),
            Some(LimitReached::All),
            "what came is being done"
        );
    }

    #[tokio::test]
    async fn one_address_cannot_close_connections_of_others() {
        let (connections, start) = (connections(100, 2), Instant::now());
        let others = admit(&connections, "192.0.2.9", 0, start).unwrap();
        let first = admit(&connections, "2001:db8::1", 1, start).unwrap();
        let second = admit(&connections, "2001:db8::2", 2, start).unwrap();
        let _third = admit(&connections, "2001:db8::3", 3, start).unwrap();
        assert_eq!(
            [&others, &first, &second].map(is_gone),
            [false, true, false]
        );
        let _requests = [&second, &_third].map(|slot| slot.connection().begin().unwrap());
        assert_eq!(
            admit(&connections, "2001:db8::4", 4, start).err(),
            Some(LimitReached::PerAddress)
        );
        assert!(admit(&connections, "2001:db8:0:1::1", 4, start).is_ok());
        for proxy in [
            "10.0.0.7",
            "::ffff:10.0.0.7",
            "127.0.0.1",
            "::1",
            "127.0.0.9",
        ] {
            let slots: Vec<_> = (0..4)
                .map(|second| admit(&connections, proxy, second, start).unwrap())
                .collect();
            assert!(!slots.iter().any(is_gone), "{proxy}");
        }
    }

    #[tokio::test]
    async fn each_phase_has_its_time_and_a_request_none() {
        let (connections, start) = (connections(9, 9), Instant::now());
        let slot = admit(&connections, "::1", 0, start).unwrap();
        let connection = slot.connection();
        let limits = ConnectionLimits::default();
        assert_eq!(
            connection.deadline(false),
            Some(start + limits.header_timeout)
        );
        connection.bytes_received();
        assert_eq!(
            connection.deadline(false),
            Some(start + limits.header_timeout),
            "bytes do not make it longer"
        );
        let asked = connection.begin().unwrap();
        assert_eq!(connection.deadline(false), None);
        assert!(!connection.is_over(start + Duration::from_secs(9_999), true));
        drop(asked);
        connection.flushed();
        let idle = connection.deadline(false).unwrap();
        assert!(idle >= start + limits.idle_timeout);
        assert!(!connection.is_over(start, false) && connection.is_over(idle, false));
        assert!(connection.begin().is_none());
    }

    #[tokio::test]
    async fn a_response_that_is_not_read_times_out_and_may_be_closed_earlier() {
        let (connections, start) = (connections(2, 2), Instant::now());
        let second = Duration::from_secs(1);
        let idle = ConnectionLimits::default().idle_timeout;
        let slots = [0, 0].map(|second| admit(&connections, "192.0.2.1", second, start).unwrap());
        let requests = slots
            .each_ref()
            .map(|slot| slot.connection().begin().unwrap());
        slots[0].connection().set_reading(false);
        let deadline = slots[0].connection().deadline(false).unwrap();
        assert!(
            deadline >= start + idle && !slots[0].connection().is_over(deadline - second, false)
        );
        slots[0].connection().set_reading(true);
        assert_eq!(slots[0].connection().deadline(false), None, "it reads on");
        assert_eq!(
            admit(&connections, "192.0.2.2", 99, start).err(),
            Some(LimitReached::All)
        );
        drop(requests);
        slots[1].connection().set_reading(false);
        assert_eq!(
            admit(&connections, "192.0.2.2", 0, start).err(),
            Some(LimitReached::All),
            "it may be read yet"
        );
        let _third = admit(&connections, "192.0.2.2", 99, start).unwrap();
        assert_eq!(slots.each_ref().map(is_gone), [false, true]);
    }

    #[tokio::test]
    async fn idle_connections_do_not_delay_a_shutdown() {
        let (connections, start) = (connections(9, 9), Instant::now());
        let slots = [0, 0, 0].map(|second| admit(&connections, "::1", second, start).unwrap());
        let [new, begins, idle] = &slots;
        begins.connection().bytes_received();
        drop(idle.connection().begin());
        idle.connection().flushed();
        let over = |at| [new, begins, idle].map(|slot| slot.connection().is_over(at, true));
        assert_eq!(
            over(start),
            [false, false, true],
            "what whoever is new has sent may be on its way"
        );
        assert_eq!(new.connection().deadline(true), Some(start + ARRIVAL));
        assert_eq!(over(start + ARRIVAL), [true, false, true]);
    }
}
