//! Which addresses are public, and a resolver that hands out no others.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// Networks that are not the public internet: first address, prefix length, name. From the IANA special-purpose
/// registries.
const V4: [(Ipv4Addr, u32, &str); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

const V6: [(Ipv6Addr, u32, &str); 13] = [
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "local NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignments"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "segment routing"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, "cloud metadata"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "private"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// Whether an address is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    private_range(address).is_none()
}

/// The name of the network that keeps an address from being public, if one does. An IPv6 address that carries an IPv4
/// one (mapped, compatible, NAT64, 6to4, ISATAP) is judged by both.
pub fn private_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => range_v4(address),
        IpAddr::V6(address) => range_v6(address),
    }
}

fn range_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let inside =
        |&&(first, prefix, _): &&(Ipv4Addr, u32, &str)| (bits ^ first.to_bits()) >> (32 - prefix) == 0;
    V4.iter().find(inside).map(|&(_, _, name)| name)
}

fn range_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let inside =
        |&&(first, prefix, _): &&(Ipv6Addr, u32, &str)| (bits ^ first.to_bits()) >> (128 - prefix) == 0;
    if let Some(&(_, _, name)) = V6.iter().find(inside) {
        return Some(name);
    }
    if let Some(carried) = carried_v4(address) {
        return range_v4(carried);
    }
    // Global unicast is 2000::/3; everything else that is left is not assigned to anybody.
    (bits >> 125 != 1).then_some("reserved")
}

/// The IPv4 address that a packet to this IPv6 address may end at.
fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        // Mapped, compatible, translated, and the well-known NAT64 prefix.
        (0, 0, 0, 0, 0, 0xffff | 0) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => v4(g, h),
        (0x2002, ..) => v4(b, c),
        // ISATAP, under any prefix.
        (_, _, _, _, 0 | 0x200, 0x5efe) => v4(g, h),
        _ => None,
    }
}

/// A name leads to an address that is not public.
#[derive(Debug, Error)]
#[error("{host} is at {address}, which is not public ({range})")]
pub(crate) struct NotPublic {
    pub host: String,
    pub address: IpAddr,
    pub range: &'static str,
}

/// Resolves names for the connection itself, so that no second answer can differ from the one that was judged.
pub(crate) struct PublicOnly {
    allow: Arc<[IpAddr]>,
}

impl PublicOnly {
    pub fn new(allow: Vec<IpAddr>) -> Self {
        Self { allow: allow.into() }
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let allow = Arc::clone(&self.allow);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let judged = judge(&host, &found, &allow)?;
            Ok(Box::new(judged.into_iter()) as Addrs)
        })
    }
}

/// All addresses of a name, if each is public or allowed. One that is not refuses the name: a name that mixes them is
/// an attack, or becomes one when the public address does not answer.
fn judge(host: &str, found: &[SocketAddr], allow: &[IpAddr]) -> Result<Vec<SocketAddr>, NotPublic> {
    for address in found.iter().map(SocketAddr::ip) {
        if let Some(range) = private_range(address).filter(|_| !allow.contains(&address)) {
            return Err(NotPublic { host: host.to_owned(), address, range });
        }
    }
    Ok(found.to_vec())
}

/// The first cause of a given kind.
pub(crate) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// What lies at the bottom of an error; the layers above only say that something failed.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::judge;
    use std::net::SocketAddr;

    #[test]
    fn one_private_address_refuses_the_name() {
        let at = |text: &str| -> SocketAddr { format!("{text}:0").parse().unwrap() };
        let (public, private) = (at("1.1.1.1"), at("10.0.0.1"));
        assert!(judge("h", &[public], &[]).is_ok());
        assert_eq!(
            judge("h", &[public, private], &[]).unwrap_err().to_string(),
            "h is at 10.0.0.1, which is not public (private)"
        );
        assert!(judge("h", &[public, private], &[private.ip()]).is_ok());
    }
}
