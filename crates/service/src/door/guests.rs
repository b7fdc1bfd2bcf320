//! Who is there, in which phase of a request, and who has to go when somebody else comes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::bounds::ConnectionLimits;
use crate::metrics::Metrics;

/// A request whose body has paused for so long has to go where there is no other room: nobody has
/// begun to do anything for it. So has one whose answer is not taken for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Time for which whoever has just connected may begin a request when nothing new is taken: what
/// they sent is on its way.
const ARRIVAL: Duration = Duration::from_secs(1);

/// Every open connection.
pub(crate) struct Guests {
    bounds: ConnectionLimits,
    /// Addresses that speak for many.
    proxies: Vec<IpNet>,
    inside: Mutex<Inside>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Inside {
    next: u64,
    guests: HashMap<u64, Arc<Guest>>,
}

/// Why a connection is closed at once. All that are there have a request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// As many as there may be.
    InAll,
    /// As many of one address as there may be.
    OfAddress,
}

impl NoRoom {
    /// Returns what whoever runs the service is told.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::InAll => {
                "connections are refused: as many as there may be have a request in progress (serve.connections)"
            }
            Self::OfAddress => {
                "connections are refused: one address has as many requests in progress as it may have connections \
                 (serve.connections_per_address; a proxy of yours belongs in serve.proxy_peers)"
            }
        }
    }
}

/// One connection's place. Dropped, it is free.
pub(super) struct Place {
    number: u64,
    guest: Arc<Guest>,
    guests: Arc<Guests>,
}

/// One connection.
pub(crate) struct Guest {
    /// What it counts for; none for those that are not counted.
    address: Option<IpAddr>,
    bounds: ConnectionLimits,
    at: Mutex<At>,
    changed: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Clone, Copy)]
struct At {
    phase: Phase,
    since: Instant,
    /// Since when the other end takes nothing of what is to be sent.
    stalled: Option<Instant>,
}

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has said nothing.
    New,
    /// A request's head has begun.
    Head,
    /// A request is in progress.
    Busy,
    /// A request is in progress, and somebody waits for the rest of its body.
    Body,
    /// The end of an answer is on its way.
    Sending,
    /// Nothing since the last answer.
    Idle,
    /// It has to go.
    Gone,
}

/// A request in progress. Dropped when its answer is complete, or nobody wants it any more.
pub(super) struct Busy(Arc<Guest>);

impl Guests {
    /// Makes a house without guests. Those of one address are counted unless it is a proxy's or
    /// this machine's own, which speaks for proxies on it.
    pub(crate) fn new(
        bounds: ConnectionLimits,
        proxies: Vec<IpNet>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            proxies,
            inside: Mutex::default(),
            metrics,
        })
    }

    /// Lets a connection in, if need be in the place of the one that has done nothing for longest;
    /// if all have a request, in that of one whose body does not come.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Result<Place, NoRoom> {
        let address = self.counted(peer);
        let mut inside = lock(&self.inside);
        let of_address = |guest: &Guest| address.is_some() && guest.address == address;
        let room = inside
            .guests
            .values()
            .filter(|guest| of_address(guest))
            .count();
        if room >= bound(self.bounds.per_address) && !inside.send_away(now, of_address) {
            self.metrics.connection_closed("address");
            return Err(NoRoom::OfAddress);
        }
        if inside.guests.len() >= bound(self.bounds.connections) && !inside.send_away(now, |_| true)
        {
            self.metrics.connection_closed("full");
            return Err(NoRoom::InAll);
        }
        let number = inside.next;
        inside.next += 1;
        let guest = Arc::new(Guest {
            address,
            bounds: self.bounds,
            at: Mutex::new(At {
                phase: Phase::New,
                since: now,
                stalled: None,
            }),
            changed: Notify::new(),
            metrics: self.metrics.clone(),
        });
        inside.guests.insert(number, guest.clone());
        self.metrics.connection_opened();
        Ok(Place {
            number,
            guest,
            guests: self.clone(),
        })
    }

    /// Sends the one away that has done nothing for longest.
    pub(super) fn make_room(&self) {
        lock(&self.inside).send_away(Instant::now(), |_| true);
    }

    /// Returns what a connection from there counts for.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        if peer.is_loopback() || self.proxies.iter().any(|network| network.contains(&peer)) {
            return None;
        }
        Some(match peer {
            IpAddr::V4(_) => peer,
            // Whoever has one address of IPv6 has a network of them.
            IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & (u128::MAX << 64)).into(),
        })
    }
}

impl Inside {
    fn send_away(&mut self, now: Instant, which: impl Fn(&Guest) -> bool) -> bool {
        // Whoever has a request comes behind all that have none.
        let mut waiting: Vec<(bool, Instant, u64)> = self
            .guests
            .iter()
            .filter(|(_, guest)| which(guest))
            .map(|(number, guest)| (*number, *lock(&guest.at)))
            .filter(|(_, at)| at.may_go(now))
            .map(|(number, at)| (at.has_request(), at.stalled.unwrap_or(at.since), number))
            .collect();
        waiting.sort_unstable();
        // One of them may begin a request this moment; then it is the next one's turn.
        let gone = waiting.into_iter().find(|(.., number)| {
            self.guests
                .get(number)
                .is_some_and(|guest| guest.send_away(now))
        });
        gone.is_some_and(|(.., number)| self.guests.remove(&number).is_some())
    }
}

impl Place {
    pub(super) fn guest(&self) -> &Arc<Guest> {
        &self.guest
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.guests.inside).guests.remove(&self.number);
        self.guests.metrics.connection_ended();
    }
}

impl At {
    /// Returns whether nothing that was begun is lost with the connection, or it waits for the
    /// other end.
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

impl Guest {
    /// Notes that bytes came.
    pub(super) fn heard(&self) {
        let mut at = lock(&self.at);
        match at.phase {
            // The time of the first head began with the connection.
            Phase::New => at.phase = Phase::Head,
            Phase::Idle => {
                at.enter(Phase::Head);
                self.changed.notify_one();
            }
            Phase::Head | Phase::Busy | Phase::Body | Phase::Sending | Phase::Gone => {}
        }
    }

    /// Notes that somebody waits for the body, or has some of it.
    pub(crate) fn waits_for_body(&self, waits: bool) {
        let mut at = lock(&self.at);
        match (at.phase, waits) {
            (Phase::Busy, true) => at.enter(Phase::Body),
            (Phase::Body, false) => at.phase = Phase::Busy,
            _ => {}
        }
    }

    /// Notes whether the other end takes what is to be sent.
    pub(super) fn takes(&self, takes: bool) {
        let mut at = lock(&self.at);
        match (at.stalled, takes) {
            (Some(_), true) => at.stalled = None,
            (None, false) => {
                at.stalled = Some(Instant::now());
                self.changed.notify_one();
            }
            _ => {}
        }
    }

    /// Notes that nothing is left to send.
    pub(super) fn flushed(&self) {
        self.turn(Phase::Sending, Phase::Idle);
    }

    /// Begins a request, unless the connection has to go.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut at = lock(&self.at);
        if at.phase == Phase::Gone {
            return None;
        }
        at.phase = Phase::Busy;
        Some(Busy(self.clone()))
    }

    /// Returns when the connection is over if nothing happens; never while it is this end that has
    /// to do something. `leaving`: nothing new is taken.
    pub(super) fn deadline(&self, leaving: bool) -> Option<Instant> {
        self.deadline_at(*lock(&self.at), leaving)
    }

    fn deadline_at(&self, at: At, leaving: bool) -> Option<Instant> {
        let of_phase = match at.phase {
            Phase::New if leaving => Some(at.since + ARRIVAL),
            Phase::New | Phase::Head => Some(at.since + self.bounds.header_timeout),
            Phase::Idle => Some(at.since + self.bounds.idle_timeout),
            Phase::Busy | Phase::Body | Phase::Sending => None,
            Phase::Gone => Some(at.since),
        };
        let of_stall = at.stalled.map(|since| since + self.bounds.idle_timeout);
        [of_phase, of_stall].into_iter().flatten().min()
    }

    /// Waits until the deadline is another one.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns whether the connection has to be dropped. `leaving`: nothing new is taken.
    pub(super) fn is_over(&self, now: Instant, leaving: bool) -> bool {
        let mut at = lock(&self.at);
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

    fn send_away(&self, now: Instant) -> bool {
        let mut at = lock(&self.at);
        let may_go = at.may_go(now);
        if may_go {
            at.phase = Phase::Gone;
            self.metrics.connection_closed("made_room");
            self.changed.notify_one();
        }
        may_go
    }

    fn turn(&self, from: Phase, to: Phase) {
        let mut at = lock(&self.at);
        if at.phase == from {
            at.enter(to);
            self.changed.notify_one();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.waits_for_body(false);
        self.0.turn(Phase::Busy, Phase::Sending);
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

    fn guests(connections: u32, per_address: u32) -> Arc<Guests> {
        let bound = |number| NonZeroU32::new(number).unwrap();
        let bounds = ConnectionLimits {
            connections: bound(connections),
            per_address: bound(per_address),
            ..ConnectionLimits::default()
        };
        Guests::new(
            bounds,
            vec!["10.0.0.0/24".parse().unwrap()],
            Arc::new(Metrics::new()),
        )
    }

    fn admit(
        guests: &Arc<Guests>,
        peer: &str,
        second: u64,
        start: Instant,
    ) -> Result<Place, NoRoom> {
        guests.admit(peer.parse().unwrap(), start + Duration::from_secs(second))
    }

    fn is_gone(place: &Place) -> bool {
        lock(&place.guest.at).phase == Phase::Gone
    }

    #[tokio::test]
    async fn the_one_that_waits_longest_makes_room_and_no_request_is_cut() {
        let (guests, start) = (guests(3, 3), Instant::now());
        let [busy, old, young] =
            [0, 1, 2].map(|second| admit(&guests, "192.0.2.1", second, start).unwrap());
        let asked = busy.guest().begin().unwrap();
        let fourth = admit(&guests, "192.0.2.2", 3, start).unwrap();
        assert_eq!(
            [&busy, &old, &young, &fourth].map(is_gone),
            [false, true, false, false]
        );
        assert!(
            old.guest().begin().is_none(),
            "nothing is begun on a connection that has to go"
        );
        let _others = [
            young.guest().begin().unwrap(),
            fourth.guest().begin().unwrap(),
        ];
        assert_eq!(
            admit(&guests, "192.0.2.2", 4, start).err(),
            Some(NoRoom::InAll)
        );
        drop(asked);
        assert_eq!(
            admit(&guests, "192.0.2.2", 4, start).err(),
            Some(NoRoom::InAll),
            "its end was not sent yet"
        );
        busy.guest().flushed();
        let _fifth = admit(&guests, "192.0.2.2", 4, start).unwrap();
        assert!(is_gone(&busy));
        drop((busy, old));
        assert_eq!(
            lock(&guests.inside).guests.len(),
            3,
            "whoever has lost its place frees no other"
        );
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_makes_room_when_nothing_else_can() {
        let (guests, start) = (guests(2, 2), Instant::now());
        let places = [0, 0].map(|second| admit(&guests, "192.0.2.1", second, start).unwrap());
        let _requests = places
            .each_ref()
            .map(|place| place.guest().begin().unwrap());
        places[1].guest().waits_for_body(true);
        assert_eq!(
            admit(&guests, "192.0.2.2", 0, start).err(),
            Some(NoRoom::InAll),
            "it may be on its way"
        );
        let third = admit(&guests, "192.0.2.2", 9, start).unwrap();
        assert_eq!(places.each_ref().map(is_gone), [false, true]);
        let _request = third.guest().begin().unwrap();
        third.guest().waits_for_body(true);
        third.guest().waits_for_body(false);
        assert_eq!(
            admit(&guests, "192.0.2.2", 99, start).err(),
            Some(NoRoom::InAll),
            "what came is being done"
        );
    }

    #[tokio::test]
    async fn one_address_takes_its_own_places_only() {
        let (guests, start) = (guests(100, 2), Instant::now());
        let others = admit(&guests, "192.0.2.9", 0, start).unwrap();
        let first = admit(&guests, "2001:db8::1", 1, start).unwrap();
        let second = admit(&guests, "2001:db8::2", 2, start).unwrap();
        let _third = admit(&guests, "2001:db8::3", 3, start).unwrap();
        assert_eq!(
            [&others, &first, &second].map(is_gone),
            [false, true, false]
        );
        let _requests = [&second, &_third].map(|place| place.guest().begin().unwrap());
        assert_eq!(
            admit(&guests, "2001:db8::4", 4, start).err(),
            Some(NoRoom::OfAddress)
        );
        assert!(admit(&guests, "2001:db8:0:1::1", 4, start).is_ok());
        for proxy in [
            "10.0.0.7",
            "::ffff:10.0.0.7",
            "127.0.0.1",
            "::1",
            "127.0.0.9",
        ] {
            let places: Vec<_> = (0..4)
                .map(|second| admit(&guests, proxy, second, start).unwrap())
                .collect();
            assert!(!places.iter().any(is_gone), "{proxy}");
        }
    }

    #[tokio::test]
    async fn each_phase_has_its_time_and_a_request_none() {
        let (guests, start) = (guests(9, 9), Instant::now());
        let place = admit(&guests, "::1", 0, start).unwrap();
        let guest = place.guest();
        let bounds = ConnectionLimits::default();
        assert_eq!(guest.deadline(false), Some(start + bounds.header_timeout));
        guest.heard();
        assert_eq!(
            guest.deadline(false),
            Some(start + bounds.header_timeout),
            "bytes do not make it longer"
        );
        let asked = guest.begin().unwrap();
        assert_eq!(guest.deadline(false), None);
        assert!(!guest.is_over(start + Duration::from_secs(9_999), true));
        drop(asked);
        guest.flushed();
        let idle = guest.deadline(false).unwrap();
        assert!(idle >= start + bounds.idle_timeout);
        assert!(!guest.is_over(start, false) && guest.is_over(idle, false));
        assert!(guest.begin().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_is_not_taken_has_a_time_and_makes_room() {
        let (guests, start) = (guests(2, 2), Instant::now());
        let second = Duration::from_secs(1);
        let idle = ConnectionLimits::default().idle_timeout;
        let places = [0, 0].map(|second| admit(&guests, "192.0.2.1", second, start).unwrap());
        let requests = places
            .each_ref()
            .map(|place| place.guest().begin().unwrap());
        places[0].guest().takes(false);
        let deadline = places[0].guest().deadline(false).unwrap();
        assert!(deadline >= start + idle && !places[0].guest().is_over(deadline - second, false));
        places[0].guest().takes(true);
        assert_eq!(places[0].guest().deadline(false), None, "it reads on");
        assert_eq!(
            admit(&guests, "192.0.2.2", 99, start).err(),
            Some(NoRoom::InAll)
        );
        drop(requests);
        places[1].guest().takes(false);
        assert_eq!(
            admit(&guests, "192.0.2.2", 0, start).err(),
            Some(NoRoom::InAll),
            "it may be read yet"
        );
        let _third = admit(&guests, "192.0.2.2", 99, start).unwrap();
        assert_eq!(places.each_ref().map(is_gone), [false, true]);
    }

    #[tokio::test]
    async fn whoever_waits_is_not_waited_for_when_it_ends() {
        let (guests, start) = (guests(9, 9), Instant::now());
        let places = [0, 0, 0].map(|second| admit(&guests, "::1", second, start).unwrap());
        let [new, begins, idle] = &places;
        begins.guest().heard();
        drop(idle.guest().begin());
        idle.guest().flushed();
        let over = |at| [new, begins, idle].map(|place| place.guest().is_over(at, true));
        assert_eq!(
            over(start),
            [false, false, true],
            "what whoever is new has sent may be on its way"
        );
        assert_eq!(new.guest().deadline(true), Some(start + ARRIVAL));
        assert_eq!(over(start + ARRIVAL), [true, false, true]);
    }
}
