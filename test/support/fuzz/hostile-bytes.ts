/** Bytes that a listener must survive: those that have ended one before, and what chance makes of them. */

/** Numbers below a limit, the same ones for a seed (mulberry32). */
export function drawsOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Targets of requests: none of them may throw where it is parsed, or where an answer repeats it. */
const targets = [
  ...[
    '/',
    '//',
    '///',
    '//[',
    'http://[',
    'http://[::1',
    'http://a:99999/',
    'http://%/',
    'x',
    '*',
    '/%',
    '/%zz',
    '/%ff',
  ],
  ...[
    '/%00',
    '/a%2fb',
    '/../..',
    '/%2e%2e/%2e%2e',
    `/${'a'.repeat(9000)}`,
    '/?%',
    '/?a=%ff&a',
    'a://',
    ':',
    '/#',
    '/\\',
  ],
  ...[
    '/redirect?loc=%0a',
    '/redirect?location=%0d%0aX:%20y&code=99',
    '/redirect?loc=%00%ff%e2%82%ac',
    '/echo?code=1000',
  ],
  ...[
    '/echo?msg=x&code=101',
    '/status/204',
    '/status/599',
    '/slow?ms=-1',
    '/header?key=__proto__',
    '/checknosnat?ips=%5b',
  ],
  ...[
    '/dial?host=%5b&port=0&request=x',
    '/register?host=%0a',
    '/guestbook?cmd=set&key=%00',
    '/run/__proto__',
    '/proxyMode',
  ],
  ...[
    '/exec/%ff/x/y',
    '/containerLogs/%/a/b',
    '/healthz',
    '/metrics',
    '/__proto__',
    '/constructor',
    '/data.json/..%00',
  ],
  ...[
    '/apis/metrics.k8s.io/v1beta1/pods?labelSelector=%3d',
    '/apis/wardle.example.com/v1alpha1/namespaces/%ff/flunders',
  ],
];

const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT', 'TRACE', 'PROPFIND', 'FOO'];

/** Of nobody, and those that the test's router leads to a backend. */
const hosts = ['a', 'plain.test', 'plain.test', 'edge.test', 'pass.test', '127.0.0.1'];

const headers = [
  ...['Connection: close', 'Connection: Upgrade\r\nUpgrade: websocket', 'Connection: Upgrade\r\nUpgrade: x'],
  ...['Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: %', 'Connection: Upgrade\r\nUpgrade: SPDY/3.1'],
  ...[
    'Connection: Upgrade, HTTP2-Settings',
    'Expect: 100-continue',
    'Expect: x',
    'Transfer-Encoding: chunked',
  ],
  ...[
    'Transfer-Encoding: gzip, chunked',
    'Content-Length: -1',
    'Content-Length: 5',
    'Content-Length: 5\r\nContent-Length: 6',
  ],
  ...[
    'Transfer-Encoding: chunked\r\nContent-Length: 3',
    'Host: b',
    'Host:',
    'X: \x00',
    'X: \xff',
    `X: ${'y'.repeat(20_000)}`,
  ],
  ...[
    'Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\nConnection: Upgrade\r\nUpgrade: websocket',
    ' folded: x',
    'Cookie: ;=;',
  ],
];

const bodies = [
  '',
  '',
  'abcde',
  'zz\r\n',
  '5\r\nabcde\r\n0\r\n\r\n',
  '{"request":null}',
  '[',
  'key=%&=&',
  '\x00\x00\x00\x00\xff',
];

/** Beginnings of other protocols. */
const others = [
  '\x00',
  '\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  // SETTINGS, then HEADERS of a stream that has no path, then a frame of a length that it does not have.
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x00\x00\x00\x00\x00\x00',
  // A ClientHello that says that it is longer, and one without a server name.
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03',
  'hostname',
  // DNS by TCP: a frame of no bytes, one of a header alone, one whose name points to itself.
  '\x00\x00',
  '\x00\x0c\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00',
  '\x00\x12\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01',
  // BGP: a marker with lengths that cannot be, an OPEN of no peer, an UPDATE before it.
  `${'\xff'.repeat(16)}\x00\x00\x01`,
  `${'\xff'.repeat(16)}\xff\xff\x02`,
  `${'\xff'.repeat(16)}\x00\x1d\x01\x04\xff\xff\x00\x00\x00\x00\x00\x00\x00`,
  `${'\xff'.repeat(16)}\x00\x17\x02\x00\x00\x00\x00`,
  // The control socket of up.
  '{"where":{"kind":"pod"}}\n',
  '{"where":null,"page":{}}\n{"page":{}}\n',
  '[]\n',
  '{"where":{"kind":"__proto__"},"folder":[]}\n',
  // Heartbeats.
  '{"ask":{},"addresses":"x"}',
  '{"node":"a","ask":"1 2","addresses":[1,null]}',
  '{"consent":"__proto__ 1e999","except":{}}',
];

/** The next hostile message. */
export function hostileBytes(draw: (below: number) => number): Buffer {
  const one = <T>(list: readonly T[], fallback: T): T => list[draw(list.length)] ?? fallback;
  const request = (): string => {
    const chosen = Array.from({ length: draw(3) }, () => one(headers, ''));
    const lines = [
      `${one(methods, 'GET')} ${one(targets, '/')} HTTP/1.${draw(2)}`,
      `Host: ${one(hosts, 'a')}`,
      ...chosen,
      '',
      '',
    ];
    return `${lines.join(draw(20) === 0 ? '\n' : '\r\n')}${one(bodies, '')}`;
  };
  const kind = draw(10);
  const text = kind < 6 ? request() : kind < 7 ? `${request()}${request()}` : one(others, '');
  const bytes = Buffer.from(text, 'latin1');
  if (kind === 9) return Buffer.from(Array.from({ length: draw(200) }, () => draw(256)));
  // Some are cut, and in some a byte is another one.
  if (draw(4) === 0 && bytes.length > 0) bytes[draw(bytes.length)] = draw(256);
  return draw(5) === 0 ? bytes.subarray(0, draw(bytes.length + 1)) : bytes;
}

/** Requests for another protocol. */
const upgrades = ['GET', 'CONNECT'].map(
  (method) => `${method} / HTTP/1.1\r\nHost: plain.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
);

/** What has ended listeners before: every target once, and upgrades behind what Node.js or a backend answers. */
export function knownRequests(): readonly Buffer[] {
  const simple = targets.map((target) => `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const first = ['Host: plain.test\r\nExpect: x', 'Host: plain.test', 'X: no host', 'Host: a'];
  const pipelined = first.flatMap((lines) =>
    upgrades.map((upgrade) => `GET / HTTP/1.1\r\n${lines}\r\n\r\n${upgrade}`),
  );
  return [...simple, ...pipelined].map((text) => Buffer.from(text, 'latin1'));
}
