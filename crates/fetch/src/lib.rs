//! Fetches a web page safely and makes it readable.
