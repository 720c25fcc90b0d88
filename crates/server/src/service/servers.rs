//! All servers of the namespace, each with its own report.

use futures_util::StreamExt as _;
use futures_util::stream;
use snowmint_coord::sources::Server;
use snowmint_coord::{Incarnation, MemberInfo, within};
use snowmint_core::UnixMillis;
use snowmint_wire::report::ServerReport;

use super::route::Route;
use super::state::Service;
use crate::access::Right;
use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::remote_peer::RemotePeer;
use crate::error::Error;

/// Milliseconds in which a peer must report.
const REPORT_MS: u64 = 2_000;
/// Peers that are called at the same time.
const AT_ONCE_MAX: usize = 32;

/// Members of the store, and the owners of the sections.
#[derive(Debug, Default)]
pub(crate) struct ServerList {
    /// The responding server, then the others.
    pub(crate) members: Vec<ListedMember>,
    /// First and last section of each range, and its owner.
    pub(crate) sections: Vec<(u16, u16, Incarnation)>,
    /// Reason that the store did not list its members.
    pub(crate) store_error: Option<String>,
}

/// A member of the store: a server, or a program that mints itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedMember {
    /// `None` while the responding server has not joined.
    pub(crate) member: Option<Incarnation>,
    pub(crate) owner: String,
    pub(crate) host: String,
    pub(crate) process: Option<u32>,
    pub(crate) addrs: AdvertisedAddrs,
    /// Whether it is the responding server.
    pub(crate) own: bool,
    pub(crate) live: bool,
    pub(crate) joined_at: Option<UnixMillis>,
    pub(crate) renewed_at: Option<UnixMillis>,
    pub(crate) report: Option<ServerReport>,
    /// Reason that a server has no report.
    pub(crate) error: Option<String>,
}

impl Service {
    /// Returns the members of the store, with the report of each server. A forwarded request gets
    /// this server's alone.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) async fn servers(&self, route: Route) -> Result<ServerList, Error> {
        self.caller().may_over_all(Right::Admin)?;
        if route == Route::Here {
            return Ok(ServerList { members: vec![self.own_member()], ..ServerList::default() });
        }
        let (members, store_error) = self.listed().await;
        let mut own = self.own_member();
        if let Some(known) = members.iter().find(|member| member.member == own.member) {
            own = ListedMember { own: true, report: own.report, ..known.clone() };
        }
        let id = own.member;
        let others = members.into_iter().filter(|other| other.member != id);
        let reported = stream::iter(others.map(|member| self.with_report(member)));
        let others: Vec<ListedMember> = reported.buffered(AT_ONCE_MAX).collect().await;
        let members = std::iter::once(own).chain(others).collect();
        let range = |(first, last, server): (u16, u16, Server)| (first, last, server.member);
        let sections = self.node.section_assignment().ranges().into_iter().map(range).collect();
        Ok(ServerList { members, sections, store_error })
    }

    /// Returns the members that the store lists; if it does not, those that this server knows, and
    /// the reason.
    pub(super) async fn listed(&self) -> (Vec<ListedMember>, Option<String>) {
        match self.node.members().await {
            Ok(members) => (members.iter().map(ListedMember::of).collect(), None),
            Err(error) => (self.known_servers(), Some(Error::from(error).message().to_owned())),
        }
    }

    /// Returns the servers that this one knows without the store.
    fn known_servers(&self) -> Vec<ListedMember> {
        let of = |server: &Server| ListedMember {
            member: Some(server.member),
            addrs: AdvertisedAddrs::read(&server.address),
            live: true,
            ..ListedMember::default()
        };
        self.node.section_assignment().servers().iter().map(of).collect()
    }

    fn own_member(&self) -> ListedMember {
        let member = self.node.incarnation();
        ListedMember {
            member,
            owner: self.node.owner().to_owned(),
            host: self.node.host().to_owned(),
            process: Some(std::process::id()),
            own: true,
            live: member.is_some(),
            report: Some(self.report()),
            ..ListedMember::default()
        }
    }

    fn report(&self) -> ServerReport {
        let readiness = self.readiness();
        let stats = self.node.stats();
        ServerReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: readiness.ready,
            codes: readiness.reasons.iter().map(|reason| reason.code.to_owned()).collect(),
            clock_ahead_ms: stats.clock_offset_ms,
            presence_ms: stats.presence_ms,
            sections: stats.sections,
            issued: self.meter.issued(),
        }
    }

    /// Adds the report of a live server, or the reason that there is none.
    async fn with_report(&self, member: ListedMember) -> ListedMember {
        let address = match &member.addrs.http {
            Some(address) if member.live => address.clone(),
            _ => return member,
        };
        let result = match self.peers().waits(&address, self.caller().client()) {
            Ok(_share) => {
                let remote_peer = RemotePeer { peers: self.peers(), address: &address };
                match within(self.peers().timer(), REPORT_MS, remote_peer.report()).await {
                    Some(report) => report.map_err(|failure| failure.reason()),
                    None => Err(format!("server sent no report within {REPORT_MS} ms")),
                }
            }
            Err(error) => Err(error.message().to_owned()),
        };
        let id = member.member.map(|id| id.to_string());
        match result {
            Ok((other, report)) if other == id => ListedMember { report: Some(report), ..member },
            // A process that was started since has the address.
            Ok(_) => {
                let error = Some("another process has this address".to_owned());
                ListedMember { error, ..member }
            }
            Err(error) => ListedMember { error: Some(error), ..member },
        }
    }
}

impl ListedMember {
    fn of(info: &MemberInfo) -> Self {
        Self {
            member: Some(info.member.incarnation),
            owner: info.member.owner.clone(),
            host: info.member.host.clone(),
            process: Some(info.member.process),
            addrs: AdvertisedAddrs::read(&info.member.address),
            live: info.live,
            joined_at: Some(info.joined_at),
            renewed_at: Some(info.renewed_at),
            ..Self::default()
        }
    }
}
