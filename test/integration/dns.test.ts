import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { decode, encode, type Packet, streamEncode } from 'dns-packet';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConnectionError, type Transport } from '../../src/client/transport.ts';
import { MessageFrames } from '../../src/dns/forwarder.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { dig } from '../support/dns/dig.ts';
import { type RunningDns, startDns } from '../support/dns/dns-server.ts';
import { FakeUpstream } from '../support/dns/upstream.ts';
import { call } from '../support/test-server.ts';
import { Stopwatch } from '../support/reference-time.ts';

let api: TestServer;
let upstream: FakeUpstream;
let dns: RunningDns;

const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
const services = '/api/v1/namespaces/shop/services';

async function create(path: string, body: object): Promise<void> {
  const { status, body: answer } = await call(api.client, 'POST', path, { body });
  if (status !== 201) throw new Error(JSON.stringify(answer));
}

function slice(service: string, endpoints: readonly object[]): KubeObject & object {
  const body = {
    metadata: { name: `${service}-1`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints,
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
  return body;
}

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  const ports = [{ name: 'http', port: 80 }];
  await create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  await create(services, { metadata: { name: 'web' }, spec: { clusterIP: '10.96.0.20', ports } });
  await create(services, { metadata: { name: 'db' }, spec: { clusterIP: 'None', ports } });
  await create(services, { metadata: { name: 'many' }, spec: { clusterIP: 'None', ports } });
  const external = { type: 'ExternalName', externalName: 'example.com' };
  await create(services, { metadata: { name: 'out' }, spec: external });
  const big = { type: 'ExternalName', externalName: 'big.example.com' };
  await create(services, { metadata: { name: 'big' }, spec: big });
  await create(
    slices,
    slice('db', [
      { addresses: ['10.244.0.6'], hostname: 'db-0' },
      { addresses: ['10.244.0.7'], hostname: 'db-1' },
    ]),
  );
  await create(
    slices,
    slice(
      'many',
      Array.from({ length: 200 }, (_, i) => ({ addresses: [`10.244.1.${i}`] })),
    ),
  );
  upstream = await FakeUpstream.start();
  dns = await startDns(api.client, { upstreams: [{ address: '127.0.0.1', port: upstream.port }] });
});
afterAll(async () => {
  await dns.stop();
  await upstream.close();
  await api.stop();
});

/** Sends bytes by UDP and waits for the answer to them. */
async function sendUdp(bytes: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    const answer = once(socket, 'message');
    socket.send(bytes, dns.port, '127.0.0.1');
    const [got] = (await answer) as [Buffer];
    return got;
  } finally {
    socket.close();
  }
}

function query(name: string, more: Partial<Packet> = {}): Packet {
  return { type: 'query', id: 7, flags: 0x0100, questions: [{ name, type: 'A' }], ...more };
}

describe('dig', () => {
  test('finds a Service, by an authoritative answer with the TTL of CoreDNS', async () => {
    const { status, flags, answers } = await dig(dns.port, 'web.shop.svc.cluster.local');
    expect([status, answers]).toEqual(['NOERROR', ['web.shop.svc.cluster.local. 5 IN A 10.96.0.20']]);
    expect(flags).toEqual(['qr', 'aa', 'rd', 'ra']);
  });

  test('gets NODATA with the SOA record for AAAA of an IPv4 Service', async () => {
    const { status, answers, authorities } = await dig(dns.port, 'web.shop.svc.cluster.local', 'AAAA');
    expect([status, answers]).toEqual(['NOERROR', []]);
    expect(authorities).toEqual([
      expect.stringMatching(
        /^cluster\.local\. 5 IN SOA ns\.dns\.cluster\.local\. hostmaster\.cluster\.local\. \d{10} 7200 1800 86400 5$/,
      ),
    ]);
  });

  test('gets NXDOMAIN for a Service that is not there', async () => {
    expect((await dig(dns.port, 'none.shop.svc.cluster.local')).status).toBe('NXDOMAIN');
  });

  test('gets the case of its question back (0x20)', async () => {
    const { answers } = await dig(dns.port, 'wEb.ShOp.SvC.cLuStEr.LoCaL');
    expect(answers).toEqual(['wEb.ShOp.SvC.cLuStEr.LoCaL. 5 IN A 10.96.0.20']);
  });

  test('gets SRV records with the addresses of their targets', async () => {
    const { answers, additionals } = await dig(dns.port, '_http._tcp.db.shop.svc.cluster.local', 'SRV');
    expect(answers).toEqual([
      '_http._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 8080 db-0.db.shop.svc.cluster.local.',
      '_http._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 8080 db-1.db.shop.svc.cluster.local.',
    ]);
    expect(additionals).toEqual([
      'db-0.db.shop.svc.cluster.local. 5 IN A 10.244.0.6',
      'db-1.db.shop.svc.cluster.local. 5 IN A 10.244.0.7',
    ]);
  });

  test('gets PTR, TXT and NS', async () => {
    const reverse = await dig(dns.port, '-x', '10.244.0.6');
    expect(reverse.answers).toEqual(['6.0.244.10.in-addr.arpa. 5 IN PTR db-0.db.shop.svc.cluster.local.']);
    const version = await dig(dns.port, 'dns-version.cluster.local', 'TXT');
    expect(version.answers).toEqual(['dns-version.cluster.local. 28800 IN TXT "1.1.0"']);
    const names = await dig(dns.port, 'cluster.local', 'NS');
    expect(names.answers).toEqual(['cluster.local. 5 IN NS ns.dns.cluster.local.']);
  });

  test('comes back by TCP where UDP is too small, and gets all', async () => {
    const whole = await dig(dns.port, 'many.shop.svc.cluster.local');
    expect(whole.text).toContain(';; Truncated, retrying in TCP mode');
    expect(whole.answers).toHaveLength(200);
    const cut = await dig(dns.port, '+ignore', 'many.shop.svc.cluster.local');
    expect(cut.flags).toContain('tc');
    expect(cut.text).toMatch(/MSG SIZE {2}rcvd: 1(1[6-9]|2[0-3])\d$/m);
    const small = await dig(dns.port, '+ignore', '+noedns', 'many.shop.svc.cluster.local');
    expect(Number(/MSG SIZE {2}rcvd: (\d+)/.exec(small.text)?.[1])).toBeLessThanOrEqual(512);
  });

  test('gets the EDNS version and size of the server', async () => {
    const { text } = await dig(dns.port, '+dnssec', 'web.shop.svc.cluster.local');
    expect(text).toContain('; EDNS: version: 0, flags: do; udp: 1232');
    expect((await dig(dns.port, '+noednsneg', '+edns=1', 'web.shop.svc.cluster.local')).status).toBe(
      'BADVERS',
    );
  });

  test.each([
    ['another class', ['-c', 'CH', 'web.shop.svc.cluster.local', 'TXT'], 'REFUSED'],
    ['an opcode that is no query', ['+opcode=4', 'web.shop.svc.cluster.local'], 'NOTIMP'],
  ])('is refused %s', async (_name, args, expected) => {
    expect((await dig(dns.port, ...args)).status).toBe(expected);
  });
});

describe('names outside the cluster', () => {
  test('are asked of the upstream, each by another id and port', async () => {
    for (let i = 0; i < 3; i++) {
      const { answers, flags } = await dig(dns.port, 'Example.com');
      expect(answers).toEqual(['example.com. 60 IN A 192.0.2.80']);
      expect(flags).toContain('qr');
    }
    expect(new Set(upstream.ids.slice(-3)).size).toBeGreaterThan(1);
    expect(new Set(upstream.clientPorts.slice(-3)).size).toBeGreaterThan(1);
  });

  test('of the zone are never asked of it, nor cluster IPs', async () => {
    const before = upstream.asked.length;
    await dig(dns.port, 'none.shop.svc.cluster.local');
    await dig(dns.port, 'cluster.local');
    await dig(dns.port, '-x', '10.96.0.20');
    expect(upstream.asked.slice(before)).toEqual([]);
    await dig(dns.port, '-x', '192.0.2.1');
    expect(upstream.asked.slice(before)).toEqual(['PTR 1.2.0.192.in-addr.arpa']);
  });

  test('that an ExternalName points to come behind its alias', async () => {
    const { answers } = await dig(dns.port, 'out.shop.svc.cluster.local');
    expect(answers).toEqual([
      'out.shop.svc.cluster.local. 5 IN CNAME example.com.',
      'example.com. 60 IN A 192.0.2.80',
    ]);
  });

  test.each([
    ['by UDP', 'LoWeR.eXample.COM', []],
    ['by TCP', 'BiG.eXample.COM', ['+tcp']],
  ] as const)(
    '%s are known in whatever case an upstream repeats them, and keep that of the client',
    async (_, name, flags) => {
      const { status, text, answers } = await dig(dns.port, name, 'A', ...flags);
      expect([status, answers.length > 0]).toEqual(['NOERROR', true]);
      expect(text).toContain(`;${name}.`);
    },
  );

  test('of an ExternalName are, too', async () => {
    const { answers } = await dig(dns.port, 'OuT.shop.svc.Cluster.LOCAL');
    expect(answers.map((line) => line.split(' ').at(-1))).toEqual(['example.com.', '192.0.2.80']);
  });

  test('that do not fit UDP are asked for by TCP', async () => {
    expect((await dig(dns.port, 'big.example.com')).answers).toHaveLength(100);
    expect((await dig(dns.port, 'big.shop.svc.cluster.local')).answers).toHaveLength(101);
  });

  test('take no answer with a wrong id', async () => {
    expect((await dig(dns.port, 'forged.example.com')).answers).toEqual([
      'forged.example.com. 60 IN A 192.0.2.80',
    ]);
  });

  test('whose answer is longer than the client takes come without it, to be asked for by TCP', async () => {
    const { answers, flags } = await dig(dns.port, 'wide.example.com', '+noedns', '+ignore');
    expect(answers).toEqual([]);
    expect(flags).toContain('tc');
  });

  test('that no upstream answers are SERVFAIL; an alias comes alone', async () => {
    expect((await dig(dns.port, 'silent.example.com')).status).toBe('SERVFAIL');
    const none = await startDns(api.client);
    try {
      expect((await dig(none.port, 'example.com')).status).toBe('SERVFAIL');
      const alias = await dig(none.port, 'out.shop.svc.cluster.local');
      expect([alias.status, alias.answers]).toEqual([
        'NOERROR',
        ['out.shop.svc.cluster.local. 5 IN CNAME example.com.'],
      ]);
    } finally {
      await none.stop();
    }
  });

  test('go to the next upstream where one refuses', async () => {
    const closed = createSocket('udp4');
    closed.bind(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address();
    closed.close();
    const two = await startDns(api.client, {
      upstreams: [port, upstream.port].map((each) => ({ address: '127.0.0.1', port: each })),
    });
    try {
      expect((await dig(two.port, 'example.com')).answers).toHaveLength(1);
    } finally {
      await two.stop();
    }
  });
});

describe('packets that are not as they should be', () => {
  test.each([
    [
      'a name of 300 bytes',
      Buffer.concat([
        ...Array<Buffer>(30).fill(Buffer.from('\u0009aaaaaaaaa')),
        Buffer.from([0, 0, 1, 0, 1]),
      ]),
    ],
    ['a name that points to itself', Buffer.from([0xc0, 12, 0, 1, 0, 1])],
    ['a question that is cut off', Buffer.from([3, 0x77])],
  ])('%s: FORMERR', async (_name, bytes) => {
    const header = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    const answer = await sendUdp(Buffer.concat([header, bytes]));
    expect([answer.readUInt16BE(0), answer.readUInt16BE(2) & 15]).toEqual([7, 1]);
  });

  test('an answer is not answered, and the server goes on', async () => {
    const socket = createSocket('udp4');
    const got: Buffer[] = [];
    socket.on('message', (bytes) => got.push(bytes));
    const response = encode({ ...query('web.shop.svc.cluster.local', { id: 1 }), type: 'response' });
    const proper = encode(query('web.shop.svc.cluster.local', { id: 2 }));
    for (const bytes of [response, Buffer.from([1, 2, 3]), Buffer.alloc(0), proper]) {
      socket.send(bytes, dns.port, '127.0.0.1');
    }
    await expect.poll(() => got.length).toBe(1);
    expect(got[0]?.readUInt16BE(0)).toBe(2);
    socket.close();
  });
});

describe('a TCP connection', () => {
  const open = async (): Promise<Socket> => {
    const socket = connect(dns.port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };

  test('carries many queries; one that waits for an upstream holds up none', async () => {
    const socket = await open();
    const frames = new MessageFrames();
    const ids: (number | undefined)[] = [];
    socket.on('data', (chunk) => {
      for (const message of frames.push(chunk)) ids.push(decode(message).id);
    });
    const slow = streamEncode(query('silent.example.com', { id: 0 }));
    const quick = Array.from({ length: 300 }, (_, i) =>
      streamEncode(query('web.shop.svc.cluster.local', { id: i + 1 })),
    );
    const bytes = Buffer.concat([slow, ...quick]);
    // Cut within a length and within a message.
    socket.write(bytes.subarray(0, 1));
    socket.write(bytes.subarray(1, 1000));
    socket.write(bytes.subarray(1000));
    const ofZone = (): typeof ids => ids.filter((id) => id !== 0);
    await expect.poll(() => ofZone().length).toBe(300);
    expect(ofZone()).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
    socket.destroy();
  });

  test('of many is answered a little in each turn of the event loop: others are served in between', async () => {
    // How many addresses were shuffled, so how many answers were made.
    let shuffled = 0;
    const random = (): number => {
      shuffled++;
      return 0.5;
    };
    const busy = await startDns(api.client, { random });
    try {
      const many = streamEncode(query('many.shop.svc.cluster.local', { id: 1 }));
      const sockets = await Promise.all(
        Array.from({ length: 5 }, async () => {
          const socket = connect(busy.port, '127.0.0.1');
          await once(socket, 'connect');
          socket.resume();
          return socket;
        }),
      );
      const count = 300;
      for (const socket of sockets) socket.write(Buffer.concat(Array<Buffer>(count).fill(many)));
      const whole = 199 * count * sockets.length;
      let most = 0;
      while (shuffled < whole) {
        const before = shuffled;
        await new Promise((resolve) => setImmediate(resolve));
        most = Math.max(most, shuffled - before);
      }
      expect(most).toBeLessThan(whole / 10);
      for (const socket of sockets) socket.destroy();
    } finally {
      await busy.stop();
    }
  });

  test('finds a place where one client has a thousand, and the others keep theirs', async () => {
    const other = connect({ port: dns.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    await once(other, 'connect');
    const sockets = await Promise.all(Array.from({ length: 1000 }, open));
    for (const socket of sockets) socket.on('error', () => undefined);
    const late = await open();
    for (const socket of [late, other]) {
      const answered = once(socket, 'data');
      socket.write(streamEncode(query('web.shop.svc.cluster.local', { id: 3 })));
      await answered;
    }
    for (const socket of [...sockets, late, other]) socket.destroy();
  });

  test('that sends a byte from time to time, and never a whole query, is closed', async () => {
    const socket = await open();
    socket.on('error', () => undefined);
    const trickle = setInterval(() => socket.write(Buffer.from([0x40])), 1000);
    await once(socket, 'close');
    clearInterval(trickle);
  });

  test('that sends no query is closed', async () => {
    const socket = await open();
    socket.on('error', () => undefined);
    socket.write(Buffer.from([0, 1, 0]));
    await once(socket, 'close');
  });
});

test('addresses come in another order each time, as CoreDNS loadbalance has it', async () => {
  const orders = new Set<string>();
  for (let i = 0; i < 20; i++) {
    orders.add((await dig(dns.port, 'db.shop.svc.cluster.local')).answers.join());
  }
  expect(orders.size).toBe(2);
});

test('what changes is answered: a Service that comes, an endpoint that stops being ready, a Service that goes', async () => {
  const answers = async (name: string): Promise<string | readonly string[]> => {
    const { status, answers: found } = await dig(dns.port, `${name}.shop.svc.cluster.local`);
    return status === 'NOERROR' ? found.map((line) => line.split(' ').at(-1) ?? '').sort() : status;
  };
  const spec = { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] };
  expect(await answers('late')).toBe('NXDOMAIN');
  await create(services, { metadata: { name: 'late' }, spec });
  const endpoints = ['10.244.2.1', '10.244.2.2'].map((address) => ({
    addresses: [address],
    conditions: { ready: true },
  }));
  await create(slices, slice('late', endpoints));
  await expect.poll(() => answers('late')).toEqual(['10.244.2.1', '10.244.2.2']);
  const unready = slice(
    'late',
    endpoints.map((endpoint, i) => ({ ...endpoint, conditions: { ready: i === 0 } })),
  );
  await call(api.client, 'PUT', `${slices}/late-1`, { body: unready });
  await expect.poll(() => answers('late')).toEqual(['10.244.2.1']);
  await call(api.client, 'DELETE', `${services}/late`);
  await expect.poll(() => answers('late')).toBe('NXDOMAIN');
});

test('a Service resolves 50 ms after its create', async () => {
  const took: number[] = [];
  for (let i = 0; i < 25; i++) {
    const name = `new-${i}`;
    await create(services, { metadata: { name }, spec: { ports: [{ port: 80 }] } });
    const sinceCreate = new Stopwatch();
    const packet = encode(query(`${name}.shop.svc.cluster.local`));
    await expect.poll(async () => decode(await sendUdp(packet)).answers?.length, { interval: 1 }).toBe(1);
    took.push(sinceCreate.elapsedMs());
  }
  expect(took.sort((a, b) => a - b)[12]).toBeLessThanOrEqual(50);
});

test('queries are counted under the names of CoreDNS', async () => {
  const server = 'server="dns://:0"';
  const queriesOfAny = async (): Promise<number> => {
    const line = `coredns_dns_requests_total{${server},zone="cluster.local.",proto="udp",family="1",type="other"} `;
    return Number((await dns.metrics.scrape()).split(line)[1]?.split('\n')[0] ?? 0);
  };
  const before = await queriesOfAny();
  for (let i = 0; i < 3; i++) await dig(dns.port, 'web.shop.svc.cluster.local', 'MD');
  // Each once, however often they are looked at.
  expect(await queriesOfAny()).toBe(before + 3);
  expect(await queriesOfAny()).toBe(before + 3);
  await dig(dns.port, 'web.shop.svc.cluster.local');
  const text = await dns.metrics.scrape();
  expect(text).toMatch(
    new RegExp(
      `^coredns_dns_requests_total{${server},zone="cluster.local.",proto="udp",family="1",type="A"} [1-9]`,
      'm',
    ),
  );
  expect(text).toMatch(
    new RegExp(
      `^coredns_dns_responses_total{${server},zone="cluster.local.",rcode="NXDOMAIN",plugin="kubernetes"} [1-9]`,
      'm',
    ),
  );
  expect(text).toMatch(
    new RegExp(`^coredns_dns_request_duration_seconds_count{${server},zone="."} [1-9]`, 'm'),
  );
});

test('a server whose API server does not answer begins after 5 s, and says SERVFAIL for what it does not know', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  // Ends as the real one does: a port that UDP got and TCP did not makes `startDns` stop and start again.
  const unanswered = (options?: { readonly signal?: AbortSignal }): Promise<never> =>
    new Promise((_resolve, reject) => {
      options?.signal?.addEventListener('abort', () => reject(new ConnectionError('ABORTED', 'aborted')));
    });
  const unreachable: Transport = {
    server: 'none',
    request: (_method, _path, options) => unanswered(options),
    stream: (_path, options) => unanswered(options),
    close: () => Promise.resolve(),
  };
  const blind = await startDns(unreachable, { log });
  try {
    expect(lines.join()).toContain('"reason":"NotSynced"');
    expect((await dig(blind.port, 'web.shop.svc.cluster.local')).status).toBe('SERVFAIL');
    expect((await dig(blind.port, 'cluster.local', 'SOA')).status).toBe('NOERROR');
    expect(blind.server.healthCheck.check()).toContain('not all names are known');
  } finally {
    await blind.stop();
  }
});
