/**
 * What the page costs whom: `node test/bench/page.ts`, the table of the page's budgets. First pairs of starts of `up` with and
 * without the page and no viewer, and what flows cost connections (`flow-cost.ts`); then, for 1,000 Services with
 * 5,000 Pods and for 10,000 with 20,000, the page's process beside such a cluster, by streams as tabs open them, and a tab in
 * Chromium (of PATH or `CHROMIUM`; without one, that part is left out). `node test/bench/page.ts <services> <pods> [tabs]` is
 * about one cluster of that size alone.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { CDPSession, Page } from 'playwright-core';
import { WebSocket } from 'ws';
import { askPageLink } from '../../src/emulation/control-socket.ts';
import { controlSocketPath } from '../../src/host/control-client.ts';
import { numberAt, textAt } from '../../src/objects/json.ts';
import { mapRows } from '../../src/page/browser/views/map-rows.ts';
import { RowStore } from '../../src/page/browser/state/row-store.ts';
import type { ServerMessage } from '../../src/page/messages.ts';
import { staticFilesOfPackage } from '../../src/page/static-files.ts';
import { chromiumPath, Visitor } from '../page/support/browser.ts';
import { Connection } from './connection.ts';
import { measureFlows } from './flow-cost.ts';
import { fillCluster } from './many-objects.ts';
import { report, type Row } from './report.ts';
import { ServerProcess } from './server-process.ts';

/** How much there is in a cluster. */
interface Size {
  readonly services: number;
  readonly pods: number;
}

const [, , givenServices, givenPods, givenTabs] = process.argv;
const sizes: readonly Size[] =
  givenServices === undefined
    ? [
        { services: 1000, pods: 5000 },
        { services: 10_000, pods: 20_000 },
      ]
    : [{ services: Number(givenServices), pods: Number(givenPods) }];
const tabs = Number(givenTabs ?? 10);
/** Starts with, and as many without the page. */
const pairs = 8;
/** Milliseconds in which a process comes to rest, and in which it is then measured. */
const restMs = 10_000;
/** Pods that change, one after the other. */
const changes = 200;
const changesPerSecond = 50;
const network = ['--service-cluster-ip-range', '10.0.0.0/12', '--network', 'off', '--log-level', 'error'];

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** CPU time of this process, which does nothing else meanwhile. */
function cpuMsOf(work: () => void): number {
  const from = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}

/** The process that answers browsers, seen from outside: a child of `up`. */
class PageProcess {
  readonly #pid: number;

  constructor({ pid }: ServerProcess) {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
    );
    // Of its threads, one may fork.
    const [child] = children;
    if (child === undefined || children.length > 1) throw new Error(`children of up: ${children.join()}`);
    this.#pid = Number(child);
  }

  /** CPU time of all its threads, in ms, to 10 ms. */
  get cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  get residentMiB(): number {
    const status = readFileSync(`/proc/${this.#pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** CPU time of the thread of its event loop, in ms. */
  get loopMs(): number {
    const stat = readFileSync(`/proc/${this.#pid}/task/${this.#pid}/schedstat`, 'utf8');
    return Number(stat.split(' ')[0]) / 1e6;
  }
}

/**
 * How long the page's process answers nothing: the most CPU that its event loop took between a ping and the answer to it,
 * so that what others take of the machine does not count.
 */
class Pinger {
  readonly #socket: WebSocket;
  readonly #child: PageProcess;
  readonly #timer: NodeJS.Timeout;
  #sentMs: number | undefined;
  #longest = 0;

  private constructor(socket: WebSocket, child: PageProcess) {
    this.#socket = socket;
    this.#child = child;
    socket.on('pong', () => this.#answered());
    // The tabs, which need more, say so.
    socket.on('error', () => this.end());
    this.#timer = setInterval(() => {
      if (this.#sentMs !== undefined) return;
      this.#sentMs = child.loopMs;
      socket.ping();
    }, 5);
  }

  static async begin(opened: Opened, child: PageProcess): Promise<Pinger> {
    const socket = new WebSocket(`ws${opened.origin.slice(4)}/data/stream`, { origin: opened.origin });
    await once(socket, 'open');
    // It follows nothing.
    socket.send(JSON.stringify({ session: opened.session }));
    return new Pinger(socket, child);
  }

  #answered(): void {
    if (this.#sentMs !== undefined)
      this.#longest = Math.max(this.#longest, this.#child.loopMs - this.#sentMs);
    this.#sentMs = undefined;
  }

  /** Since the last call. */
  longestMs(): number {
    const { loopMs } = this.#child;
    const longest = Math.max(this.#longest, loopMs - (this.#sentMs ?? loopMs));
    this.#longest = 0;
    return longest;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#socket.terminate();
  }
}

/** How to speak to the page of an `up`. */
interface Opened {
  readonly link: string;
  /** `http://127.0.0.1:6480`. */
  readonly origin: string;
  /** Of a session. */
  readonly session: string;
}

/** The first look: the page's process begins with it. */
async function openPage({ kubeconfig }: ServerProcess): Promise<Opened> {
  const link = (await askPageLink(controlSocketPath(kubeconfig))) ?? '';
  const { origin, hash } = new URL(link);
  const headers = { origin, 'content-type': 'application/json' };
  const body = JSON.stringify({ key: hash.slice('#k='.length) });
  const answer: unknown = await (
    await fetch(`${origin}/data/session`, { method: 'POST', headers, body })
  ).json();
  return { link, origin, session: textAt(answer, 'session') };
}

/** A tab without a browser. */
class Tab {
  readonly #socket: WebSocket;
  /** Resolves with the rows when all kinds have been listed. */
  readonly complete: Promise<RowStore>;
  /** When the first state came, by `performance.now()`. */
  firstAt = 0;
  bytes = 0;

  constructor({ origin, session }: Opened, { pods }: Size) {
    this.#socket = new WebSocket(`ws${origin.slice(4)}/data/stream`, { origin });
    const store = new RowStore();
    const complete = Promise.withResolvers<RowStore>();
    this.complete = complete.promise;
    this.#socket.on('error', (error) => complete.reject(error));
    this.#socket.on('close', (code, reason) =>
      complete.reject(new Error(`the page ended a tab: ${code} ${reason.toString()}`)),
    );
    this.#socket.on('open', () => {
      this.#socket.send(JSON.stringify({ session }));
      this.#socket.send(JSON.stringify({ follow: { view: 'map', all: true } }));
    });
    this.#socket.on('message', (data: Buffer) => {
      this.bytes += data.length;
      const message = JSON.parse(data.toString()) as ServerMessage;
      if ('state' in message) {
        this.firstAt ||= performance.now();
        store.take(message.state);
      } else if ('status' in message) store.status = message.status;
      else if (!store.change(message)) complete.reject(new Error('a message is missing'));
      const { follow, status } = store;
      if (follow !== undefined && status.loading.length === 0 && store.all('pod').length >= pods) {
        complete.resolve(store);
      }
    });
  }

  close(): void {
    this.#socket.terminate();
  }
}

/** Changes a Pod after the other in one column of its row. */
async function changePods(
  { target }: ServerProcess,
  { pods }: Size,
  { perSecond, count, first }: { readonly perSecond: number; readonly count: number; readonly first: number },
): Promise<void> {
  // One from before may have been idle for too long.
  const connection = await Connection.open(target);
  const began = performance.now();
  for (let i = 0; i < count; i++) {
    const containerStatuses = [
      { name: 'web', restartCount: 1 + first + i, ready: true, image: '', imageID: '' },
    ];
    await connection.request({
      ...{ method: 'PATCH', path: `/api/v1/namespaces/default/pods/web-${(first + i) % pods}/status` },
      ...{
        contentType: 'application/merge-patch+json',
        body: JSON.stringify({ status: { containerStatuses } }),
      },
    });
    const waitMs = began + ((i + 1) * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
  }
  connection.close();
}

async function ask({ origin, session }: Opened, path: string, body?: object): Promise<unknown> {
  const headers = { origin, 'content-type': 'application/json', authorization: `Bearer ${session}` };
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${origin}${path}`, { headers, ...sent });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

/** Milliseconds of one question, CPU of the page's process for it, and its longest turn. */
async function measureAnswers(
  child: PageProcess,
  pinger: Pinger,
  count: number,
  question: () => Promise<unknown>,
) {
  const took: number[] = [];
  pinger.longestMs();
  const from = child.cpuMs;
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    await question();
    took.push(performance.now() - began);
  }
  return { ms: median(took), cpuMs: (child.cpuMs - from) / count, longestMs: pinger.longestMs() };
}

/** `up` with the page that nobody looks at, and without it, in turns. */
async function measureStarts(): Promise<readonly Row[]> {
  const startMs: number[] = [];
  const cpuMs: number[] = [];
  const memory: number[] = [];
  const measure = async (page: string) => {
    const server = await ServerProcess.start([...network, '--page', page], []);
    await sleep(3000);
    const seen = {
      ...{ startMs: server.startMs, cpuMs: (await server.cpu()) / 1000 },
      memory: await server.residentMiB(),
    };
    await server.stop();
    return seen;
  };
  await measure('off');
  for (let pair = 0; pair < pairs; pair++) {
    // Who comes second finds warmer caches: each does so as often.
    const firstPage = pair % 2 === 0 ? 'off' : '0';
    const one = await measure(firstPage);
    const other = await measure(firstPage === 'off' ? '0' : 'off');
    const [without, withPage] = firstPage === 'off' ? [one, other] : [other, one];
    startMs.push(withPage.startMs - without.startMs);
    cpuMs.push(withPage.cpuMs - without.cpuMs);
    memory.push(withPage.memory - without.memory);
  }
  return [
    {
      name: 'up without a viewer: start, median of the differences',
      value: median(startMs),
      unit: 'ms',
      budget: '± 10 ms',
    },
    { name: 'the same in CPU, with three seconds of rest', value: median(cpuMs), unit: 'ms' },
    {
      name: 'up without a viewer: memory, median of the differences',
      value: median(memory),
      unit: 'MiB',
      budget: '± 1 MiB',
    },
  ];
}

async function measureEmpty(): Promise<readonly Row[]> {
  const server = await ServerProcess.start([...network, '--page', '0', '--nodes', '0'], []);
  await openPage(server);
  const child = new PageProcess(server);
  await sleep(restMs);
  const rows = [
    { name: 'child: idle, nothing looked at', value: child.residentMiB, unit: 'MiB', budget: '≤ 90 MiB' },
  ];
  await server.stop();
  return rows;
}

async function measureChild(server: ServerProcess, size: Size): Promise<readonly Row[]> {
  const began = performance.now();
  const page = await openPage(server);
  const wordsMs = performance.now() - began;
  const child = new PageProcess(server);
  const pinger = await Pinger.begin(page, child);
  const first = new Tab(page, size);
  const store = await first.complete;
  const fullMs = performance.now() - began;
  const coldMs = child.cpuMs;
  const coldTurnMs = pinger.longestMs();
  say('all rows are there');
  await sleep(restMs);
  const idleFrom = child.cpuMs;
  pinger.longestMs();
  await sleep(restMs);
  const idle = (child.cpuMs - idleFrom) / restMs;
  const memory = child.residentMiB;
  const warmFrom = performance.now();
  const second = new Tab(page, size);
  await second.complete;
  const warmMs = performance.now() - warmFrom;
  const warmTurnMs = pinger.longestMs();
  second.close();
  const trace = await measureAnswers(child, pinger, 20, async () =>
    ask(page, '/data/trace', { from: 'pod/default/web-0', to: 'svc/default/web-1:80' }),
  );
  const reach = await measureAnswers(child, pinger, 5, async () =>
    ask(page, '/data/reach?namespace=default'),
  );
  say('questions are answered');
  const changing = async (from: number) => {
    const before = child.cpuMs;
    pinger.longestMs();
    await changePods(server, size, { perSecond: changesPerSecond, count: changes, first: from });
    await sleep(1000);
    return { cpuMs: (child.cpuMs - before) / changes, turnMs: pinger.longestMs() };
  };
  const beforeMs = Date.now();
  const one = await changing(0);
  // Another millisecond each time: what was made for the last one who asked is kept.
  let asked = 0;
  const past = await measureAnswers(child, pinger, 5, async () =>
    ask(page, `/data/state?view=events&namespace=none&at=${new Date(beforeMs + asked++).toISOString()}`),
  );
  const others = Array.from({ length: tabs - 1 }, () => new Tab(page, size));
  await Promise.all(others.map(({ complete }) => complete));
  const tabsTurnMs = pinger.longestMs();
  const many = await changing(changes);
  const manyMemory = child.residentMiB;
  pinger.end();
  for (const tab of [first, ...others]) tab.close();
  const layouts = Array.from({ length: 5 }, () => cpuMsOf(() => mapRows(store)));
  const ms = (name: string, value: number, budget?: string): Row => ({
    ...{ name, value, unit: 'ms' },
    ...(budget === undefined ? {} : { budget }),
  });
  const turn = '≤ 200 ms';
  return [
    ms('child, cold: first answer', wordsMs, '≤ 1,000 ms'),
    ms('child, cold: full state', fullMs, '≤ 4,000 ms'),
    ms('the same in CPU of the child', coldMs),
    ms('the same: longest turn of its event loop, in CPU', coldTurnMs, turn),
    ms('child, warm: full state of a further tab', warmMs),
    ms('the same: longest turn', warmTurnMs, turn),
    { name: 'full state', value: second.bytes / 2 ** 20, unit: 'MiB' },
    { name: 'child: idle, one tab', value: memory, unit: 'MiB', budget: '≤ 220 MiB' },
    { name: `child: ${tabs} tabs`, value: manyMemory, unit: 'MiB' },
    { name: 'child: CPU of one idle tab', value: idle * 100, unit: '%', budget: '0 %' },
    ms('child: CPU of a change, one tab', one.cpuMs, '≤ 1 ms'),
    ms(`child: CPU of a change, ${tabs} tabs`, many.cpuMs, '≤ 2 ms'),
    ms('the same: longest turn', many.turnMs, turn),
    ms(`${tabs} tabs open at once: longest turn`, tabsTurnMs, turn),
    ms('trace by the page, median', trace.ms, '≤ 150 ms'),
    ms('the same in CPU of the child', trace.cpuMs),
    ms('the same: longest turn', trace.longestMs, turn),
    ms('Reach of the namespace of all Pods, median', reach.ms),
    ms('the same in CPU of the child', reach.cpuMs),
    ms('the same: longest turn', reach.longestMs, turn),
    ms('the cluster as it was, median', past.ms),
    ms('the same in CPU of the child', past.cpuMs),
    ms('the same: longest turn', past.longestMs, turn),
    ms('rows of the Map, grouped and sorted, median', median(layouts), '≤ 20 ms'),
  ];
}

/** What Chromium counts, in seconds and bytes. */
async function metricsOf(session: CDPSession): Promise<Readonly<Record<string, number>>> {
  const { metrics } = await session.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** Opens the Map. @returns milliseconds until its rows are drawn, and what the browser saw. */
async function openMap(page: Page, { link }: Opened, { services }: Size) {
  const requests: string[] = [];
  page.on('request', (sent) => requests.push(sent.url()));
  const began = performance.now();
  await page.goto(link.replace('/#', '/map?ns=default#'), { waitUntil: 'commit' });
  await page.getByText(`${(services + 1).toLocaleString('en-US')} Services`, { exact: true }).waitFor();
  const drawnMs = performance.now() - began;
  const seen: unknown = await page.evaluate(`({
    paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    elements: document.querySelectorAll('.map-picture *').length,
  })`);
  const files = [...new Set(requests)].filter((each) => !each.includes('/data/'));
  return { drawnMs, paintMs: numberAt(seen, 'paintMs'), elements: numberAt(seen, 'elements'), files };
}

async function measureBrowser(server: ServerProcess, size: Size): Promise<readonly Row[]> {
  if (chromiumPath === undefined) return [];
  const of = await openPage(server);
  // The child is warm when the browser comes.
  const tab = new Tab(of, size);
  await tab.complete;
  const visitor = await Visitor.launch();
  const opened = await (async () => {
    const context = await visitor.context();
    // Its own start is not the page's.
    await (await context.newPage()).goto('about:blank');
    return await openMap(await context.newPage(), of, size);
  })();
  const sizes = await Promise.all(
    ['.js', '.css'].map(async (extension) => {
      const url = opened.files.find((file) => file.endsWith(extension)) ?? '';
      return (
        gzipSync(await textOf((await fetch(url)).body ?? new ReadableStream()), { level: 9 }).length / 1024
      );
    }),
  );
  const page = await (await visitor.context()).newPage();
  await page.addInitScript(`
    globalThis.longTasks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longTasks.push(duration);
    }).observe({ type: 'longtask', buffered: true });
  `);
  await openMap(page, of, size);
  await sleep(2000);
  await page.evaluate('longTasks.splice(0)');
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const seconds = 10;
  const changing = changePods(server, size, {
    ...{ perSecond: changesPerSecond, count: changesPerSecond * seconds, first: 2 * changes },
  });
  // The page is told four times a second: what each window of that costs is what a frame with news costs at most.
  const windows: number[] = [];
  let before = await metricsOf(session);
  for (let i = 0; i < 4 * seconds; i++) {
    await sleep(250);
    const now = await metricsOf(session);
    windows.push(((now['ScriptDuration'] ?? 0) - (before['ScriptDuration'] ?? 0)) * 1000);
    before = now;
  }
  await changing;
  const longest: unknown = await page.evaluate('Math.max(0, ...longTasks)');
  await session.send('HeapProfiler.collectGarbage');
  const heap = ((await metricsOf(session))['JSHeapUsedSize'] ?? 0) / 2 ** 20;
  await visitor.close();
  tab.close();
  return [
    { name: 'script, gzip', value: sizes[0] ?? NaN, unit: 'KiB', budget: '≤ 60 KiB' },
    { name: 'style, gzip', value: sizes[1] ?? NaN, unit: 'KiB', budget: '≤ 8 KiB' },
    { name: 'files of the first load', value: opened.files.length, unit: '', budget: '4' },
    { name: 'tab: first paint, child warm', value: opened.paintMs, unit: 'ms', budget: '≤ 800 ms' },
    { name: 'tab: all rows there, child warm', value: opened.drawnMs, unit: 'ms', budget: '≤ 1,500 ms' },
    { name: 'tab: elements of the Map', value: opened.elements, unit: '', budget: '≤ 3,000' },
    {
      name: `tab: script for each message, ${changesPerSecond} Pods/s, median`,
      value: median(windows),
      unit: 'ms',
    },
    { name: 'tab: the same, p95', value: quantile(windows, 0.95), unit: 'ms', budget: '≤ 16 ms' },
    {
      name: 'tab: longest task meanwhile (0: none over 50 ms)',
      value: Number(longest),
      unit: 'ms',
      budget: '≤ 50 ms',
    },
    { name: 'tab: heap', value: heap, unit: 'MiB', budget: '≤ 40 MB' },
  ];
}

function say(text: string): void {
  process.stderr.write(`${new Date().toTimeString().slice(0, 8)} ${text}\n`);
}

async function measureSize(size: Size): Promise<readonly Row[]> {
  // It says why the page's process has ended, if it does.
  const server = await ServerProcess.start([...network, '--log-level', 'warn', '--page', '0'], []);
  try {
    const connections = await Promise.all(
      Array.from({ length: 16 }, async () => Connection.open(server.target)),
    );
    await fillCluster(connections, size.services, size.pods);
    for (const connection of connections) connection.close();
    say(`${size.services} Services and ${size.pods} Pods are there`);
    return [...(await measureChild(server, size)), ...(await measureBrowser(server, size))];
  } finally {
    await server.stop();
  }
}

// As of a package: the first viewer of a source tree has to wait for that.
await staticFilesOfPackage();
if (givenServices === undefined)
  await report('page', [...(await measureStarts()), ...(await measureEmpty()), ...(await measureFlows())]);
for (const size of sizes) {
  const { services, pods } = size;
  process.stdout.write(`\n${services} Services, ${pods} Pods\n`);
  await report(`page-${services}-${pods}`, await measureSize(size));
}
