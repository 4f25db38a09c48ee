import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { ConnectionError } from '../../../src/client/transport.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { notFound } from '../../../src/objects/status.ts';
import { HealthServer } from '../../../src/telemetry/health.ts';
import { createLog, type LogOptions } from '../../../src/telemetry/log.ts';
import { countsOf, mergedMetrics, Metrics } from '../../../src/telemetry/metrics.ts';

function logged(options: Pick<LogOptions, 'format' | 'level'>): {
  lines: string[];
  log: ReturnType<typeof createLog>;
} {
  const lines: string[] = [];
  return { lines, log: createLog({ ...options, destination: { write: (line) => lines.push(line) } }) };
}

describe('createLog', () => {
  it('writes one JSON object a line', () => {
    const { lines, log } = logged({ format: 'json', level: 'info' });
    log.debug('hidden');
    log.child({ controller: 'c' }).info({ key: 'default/web' }, 'wrote it');
    expect(lines).toHaveLength(1);
    const entry: unknown = JSON.parse(lines[0] ?? '');
    const { time } = isRecord(entry) ? entry : {};
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(entry).toEqual({
      level: 'info',
      time,
      controller: 'c',
      key: 'default/web',
      msg: 'wrote it',
    });
  });

  it.each([
    [notFound({ group: '', resource: 'services' }, 'web'), { code: 404, reason: 'NotFound' }],
    [new ConnectionError('ECONNRESET', 'GET https://api: read ECONNRESET'), { code: 'ECONNRESET' }],
    [Object.assign(new Error('no space left'), { code: 'ENOSPC' }), { code: 'ENOSPC' }],
  ])('says where in the code no error was met that comes from outside: %o', (err, members) => {
    const { lines, log } = logged({ format: 'json', level: 'info' });
    log.warn({ err }, 'trying again');
    const entry: unknown = JSON.parse(lines[0] ?? '');
    expect(entry).toMatchObject({ err: { message: err.message, ...members } });
    expect(lines[0]).not.toContain('"stack"');
  });

  it.each([new TypeError('no function'), Object.assign(new Error('bad'), { code: 'ERR_INVALID_ARG_TYPE' })])(
    'says where in the code a bug is: %o',
    (err) => {
      const { lines, log } = logged({ format: 'json', level: 'info' });
      log.error({ err }, 'failed');
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ err: { stack: err.stack } });
    },
  );

  it('writes lines for people', () => {
    const { lines, log } = logged({ format: 'pretty', level: 'debug' });
    log.warn({ key: 'default/web', ports: [1, 2], err: new Error('no way') }, 'trying again');
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} .*WARN.* trying again key=default\/web ports=\[1,2\] err="no way"\n$/,
    );
  });

  it.each(['json', 'pretty'] as const)('hides secrets: %s', (format) => {
    const { lines, log } = logged({ format, level: 'info' });
    log.info({ token: 'abc', headers: { authorization: 'Bearer abc' } }, 'x');
    expect(lines[0]).not.toContain('abc');
  });
});

describe('HealthServer', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  async function serve(problems: { live?: string; ready?: string }): Promise<string> {
    const metrics = new Metrics();
    metrics.leader.set({ name: 'l' }, 1);
    const server = new HealthServer({
      host: '127.0.0.1',
      port: 0,
      metrics,
      live: [{ name: 'loop', check: () => problems.live }],
      ready: [
        { name: 'ping', check: () => undefined },
        { name: 'informer-sync', check: () => problems.ready },
      ],
    });
    const { port } = await server.listen();
    closing.push(() => server.close());
    return `http://127.0.0.1:${port}`;
  }

  const get = async (url: string): Promise<[number, string]> => {
    const response = await fetch(url);
    return [response.status, await response.text()];
  };

  it('answers what is well', async () => {
    const url = await serve({});
    expect(await get(`${url}/healthz`)).toEqual([200, 'ok']);
    expect(await get(`${url}/livez`)).toEqual([200, 'ok']);
    expect(await get(`${url}/readyz`)).toEqual([200, 'ok']);
    expect(await get(`${url}/readyz?verbose`)).toEqual([
      200,
      '[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n',
    ]);
    expect((await get(`${url}/other`))[0]).toBe(404);
    expect((await fetch(`${url}/healthz`, { method: 'POST' })).status).toBe(405);
  });

  it('answers what is not', async () => {
    const problems: { ready?: string } = { ready: 'not synced yet: pods' };
    const url = await serve(problems);
    expect(await get(`${url}/healthz`)).toEqual([200, 'ok']);
    expect(await get(`${url}/readyz`)).toEqual([
      500,
      '[+]ping ok\n[-]informer-sync failed: not synced yet: pods\nreadyz check failed\n',
    ]);
    delete problems.ready;
    expect(await get(`${url}/readyz`)).toEqual([200, 'ok']);
  });

  it('answers metrics, refreshed before', async () => {
    const url = await serve({});
    const [status, text] = await get(`${url}/metrics`);
    expect(status).toBe(200);
    expect(text).toContain('leader_election_master_status{name="l"} 1');
    expect(text).toMatch(/servicenet_build_info\{version="\d+\.\d+\.\d+.*"\} 1/);
  });

  it('says when its port is taken', async () => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = address === null || typeof address === 'string' ? 0 : address.port;
    const server = new HealthServer({ host: '127.0.0.1', port, metrics: new Metrics(), live: [], ready: [] });
    await expect(server.listen()).rejects.toThrow('EADDRINUSE');
    other.close();
  });
});

describe('Metrics', () => {
  it('refreshes computed gauges at each scrape, until the refresh is removed', async () => {
    const metrics = new Metrics();
    let now = 0;
    const remove = metrics.beforeScrape(() => metrics.cacheAge.set({ resource: 'pods' }, ++now));
    expect(await metrics.scrape()).toContain('servicenet_cache_age_seconds{resource="pods"} 1');
    expect(await metrics.scrape()).toContain('servicenet_cache_age_seconds{resource="pods"} 2');
    remove();
    expect(await metrics.scrape()).toContain('servicenet_cache_age_seconds{resource="pods"} 2');
  });

  it('of several processes: sums of what is counted, the largest of what each has of the same', async () => {
    const one = new Metrics();
    const other = new Metrics();
    one.collectProcessMetrics();
    one.lists.inc({ resource: 'pods' }, 2);
    other.lists.inc({ resource: 'pods' }, 3);
    other.lists.inc({ resource: 'services' });
    other.beforeScrape(() => other.cacheAge.set({ resource: 'pods' }, 9));
    one.cacheAge.set({ resource: 'pods' }, 4);
    for (const seconds of [0.01, 2]) one.requestSeconds.observe({ verb: 'GET', host: 'api' }, seconds);
    other.requestSeconds.observe({ verb: 'GET', host: 'api' }, 2);
    const text = await one.scrape([await other.snapshot()]);
    const samples = text.split('\n').filter((line) => /^(servicenet_|rest_)/.test(line));
    expect(samples.filter((line) => !/le="(?:0\.025|0\.1|0\.25|0\.5|1|4|8|15|30|60)"/.test(line))).toEqual([
      'rest_client_request_duration_seconds_bucket{le="0.005",verb="GET",host="api"} 0',
      'rest_client_request_duration_seconds_bucket{le="2",verb="GET",host="api"} 3',
      'rest_client_request_duration_seconds_bucket{le="+Inf",verb="GET",host="api"} 3',
      'rest_client_request_duration_seconds_sum{verb="GET",host="api"} 4.01',
      'rest_client_request_duration_seconds_count{verb="GET",host="api"} 3',
      'servicenet_cache_age_seconds{resource="pods"} 9',
      'servicenet_reflector_lists_total{resource="pods"} 5',
      'servicenet_reflector_lists_total{resource="services"} 1',
      expect.stringMatching(/^servicenet_build_info\{version=".*"\} 1$/),
    ]);
    expect(text).toContain('# TYPE rest_client_request_duration_seconds histogram');
    expect(text).toMatch(/^process_start_time_seconds \d+$/m);
  });

  it('of a process that has ended: what it counted', async () => {
    const ended = new Metrics();
    ended.lists.inc({ resource: 'pods' }, 2);
    ended.cacheObjects.set({ resource: 'pods' }, 7);
    ended.requestSeconds.observe({ verb: 'GET', host: 'api' }, 2);
    const text = await mergedMetrics([countsOf(await ended.snapshot())]).metrics();
    expect(text).toContain('servicenet_reflector_lists_total{resource="pods"} 2');
    expect(text).toContain('rest_client_request_duration_seconds_count{verb="GET",host="api"} 1');
    expect(text).not.toContain('servicenet_cache_objects');
  });
});
