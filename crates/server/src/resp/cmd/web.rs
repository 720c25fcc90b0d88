//! Protection from browsers. A page can make a browser send `POST` to any port; the lines that
//! follow would be commands. Like Redis, the server closes the connection on the first words of
//! HTTP.

pub(super) fn speaks(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
