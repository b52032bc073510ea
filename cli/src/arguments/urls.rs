//! The help of the option that compares lines as URLs.

/// The help of --url. A test compares the table with what the command does.
pub const URL_HELP: &str = "\
Compare URLs as a crawler does

URLs are parsed by the WHATWG URL standard. Two URLs are equal if \
they differ only in the spelling of scheme and host, a default port, dot segments, unnecessary \
escapes, a fragment, or an empty query.

This applies to http, https, ftp, ws and wss URLs. All other lines are compared byte by byte. Lines are written \
unchanged. A state remembers how its lines are compared.

Equal (=) or not (-), by --url, and by --url --sort-query:

  HTTP://A.example            http://a.example/               = =
  http://a.example/x?#top     http://a.example/x              = =
  http://a.example/b/../x     http://a.example/x              = =
  http://a.example/%7Ex       http://a.example/~x             = =
  http://bücher.example/      http://xn--bcher-kva.example/   = =
  http://a.example:80/        http://a.example/               = =
  http://127.1/               http://127.0.0.1/               = =
  http://a.example/?b=1&a=2   http://a.example/?a=2&b=1       - =
  http://a.example/?a=1&&b=2  http://a.example/?a=1&b=2       - =
  http://a.example/?a         http://a.example/?a=            - -
  http://a.example/?q=a+b     http://a.example/?q=a%20b       - -
  http://a.example/?q=a/b     http://a.example/?q=a%2Fb       - -
  http://a.example/a,b        http://a.example/a%2Cb          - -
  http://a.example/x;         http://a.example/x              - -
  http://straße.example/      http://strasse.example/         - -
  http://a.example/?q=a+b     http://a.example/?q=a%2Bb       - -
  http://a.example/a/b        http://a.example/a%2Fb          - -
  http://a.example/x          http://a.example/X              - -
  http://a.example/x          https://a.example/x             - -
";
