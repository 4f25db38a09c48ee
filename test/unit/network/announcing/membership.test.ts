import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  askEveryMs,
  Fence,
  leaseLastsMs,
  type Renewal,
  renewEveryMs,
  takeOverAfterMs,
} from '../../../../src/network/announcing/fence.ts';
import { Liveness } from '../../../../src/network/announcing/membership.ts';
import {
  expiredMembers,
  isAdmitted,
  keepsInMove,
  type Member,
  votersOf,
} from '../../../../src/network/announcing/membership.ts';
import { ownerOf } from '../../../../src/network/announcing/membership.ts';

const member = (acquired: string, voters: Readonly<Record<string, string>> = {}): Member => ({
  acquired,
  voters: new Map(Object.entries(voters)),
});

describe('members', () => {
  test('are admitted when all others name them as they are now', () => {
    const members = new Map([
      ['a', member('1', { b: '2' })],
      ['b', member('2', { a: '1' })],
      ['c', member('3', { a: '1', b: '2' })],
    ]);
    expect([...members.keys()].filter((node) => isAdmitted(node, members))).toEqual(['a', 'b']);
    members.set('b', member('4', { a: '1' }));
    expect(isAdmitted('b', members)).toBe(false);
    expect(isAdmitted('d', members)).toBe(false);
    expect(votersOf('a', members)).toEqual(
      new Map([
        ['b', '4'],
        ['c', '3'],
      ]),
    );
  });

  test('are given back when they have died by those that they name', () => {
    const members = new Map([
      ['a', member('1')],
      ['b', member('2', { a: '0' })],
      ['c', member('3', {})],
      ['d', member('4', { a: '1' })],
    ]);
    expect(expiredMembers('a', members, (node) => node === 'd')).toEqual(['b']);
  });
});

/** What is stored of a Lease, with its version. */
interface Stored extends Member {
  readonly version: number;
  readonly isHeld: boolean;
  readonly announced: ReadonlySet<string>;
}

const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
const tick = 50;
const pass = 25;

/** What may go wrong with a node, from when on, for how long. */
interface Fault {
  readonly node: number;
  readonly of: 'api' | 'watch' | 'heartbeats' | 'pause' | 'restart' | 'absent';
  readonly from: number;
  readonly lasts: number;
}

/**
 * Agents as `LeaseKeeper` and `AnnounceAgent` are, in a world in which the API server, its watches and heartbeats are lost
 * or late, and processes stop for a while or begin anew. Time passes in steps; the kernel's lifetimes go on in a pause.
 */
class World {
  now = 0;
  readonly stored = new Map<string, Stored>();
  readonly nodes: readonly Agent[];
  readonly #faults: readonly Fault[];
  readonly #delays: readonly number[];
  #version = 0;
  #drawn = 0;
  readonly due: { readonly at: number; readonly run: () => void }[] = [];

  constructor(count: number, faults: readonly Fault[], delays: readonly number[]) {
    this.nodes = Array.from({ length: count }, (_, index) => new Agent(this, index));
    this.#faults = faults;
    this.#delays = delays;
  }

  has(node: number, of: Fault['of']): boolean {
    return this.#faults.some(
      (fault) =>
        fault.node === node &&
        fault.of === of &&
        fault.from <= this.now &&
        this.now < fault.from + fault.lasts,
    );
  }

  after(milliseconds: number, run: () => void): void {
    this.due.push({ at: this.now + milliseconds, run });
  }

  delay(): number {
    return this.#delays[this.#drawn++ % this.#delays.length] ?? 10;
  }

  /** A write that replaces a version, and tells all watches; undefined: a conflict. */
  write(name: string, version: number, lease: Omit<Stored, 'version'>): number | undefined {
    if ((this.stored.get(name)?.version ?? 0) !== version) return undefined;
    const stored = { ...lease, version: ++this.#version };
    this.stored.set(name, stored);
    for (const agent of this.nodes) agent.inbox.push({ name, stored, at: this.now + this.delay() });
    return stored.version;
  }

  step(): void {
    this.now += pass;
    for (let index = 0; index < this.due.length;) {
      const entry = this.due[index];
      if (entry === undefined || entry.at > this.now) index++;
      else {
        this.due.splice(index, 1);
        entry.run();
      }
    }
    for (const agent of this.nodes) agent.step();
  }
}

class Agent {
  readonly name: string;
  readonly #world: World;
  readonly #index: number;
  inbox: { readonly name: string; readonly stored: Stored; readonly at: number }[] = [];
  /** When addresses end in the kernel. */
  readonly kernel = new Map<string, number>();
  /** When the last renewal was sent by which it may have addresses. */
  renewedAt = Number.NEGATIVE_INFINITY;
  fence = new Fence(true);
  #liveness = new Liveness(takeOverAfterMs);
  #cache = new Map<string, Stored>();
  #unseen = new Map<number, Renewal>();
  #blindSince: number | undefined;
  #seenVersion = 0;
  #seenAt = Number.NEGATIVE_INFINITY;
  #wanted = new Set<string>();
  #known: { version: number; acquired: string | undefined } | undefined;
  #isWriting = false;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #incarnation = 0;

  constructor(world: World, index: number) {
    this.#world = world;
    this.#index = index;
    this.name = `node-${index + 1}`;
  }

  #begin(): void {
    this.#incarnation++;
    this.fence = new Fence(true);
    this.#liveness = new Liveness(takeOverAfterMs);
    this.#cache = new Map();
    this.#unseen = new Map();
    this.#blindSince = undefined;
    this.#seenVersion = 0;
    this.#seenAt = Number.NEGATIVE_INFINITY;
    this.#wanted = new Set();
    this.#known = undefined;
    this.#isWriting = false;
    this.inbox = [];
    for (const [name, stored] of this.#world.stored) this.#see(name, stored);
  }

  get #isDown(): boolean {
    return this.#world.has(this.#index, 'restart') || this.#world.has(this.#index, 'absent');
  }

  #wasDown = true;

  step(): void {
    const { now } = this.#world;
    for (const [address, end] of this.kernel) if (end <= now) this.kernel.delete(address);
    if (this.#isDown) {
      this.#wasDown = true;
      return;
    }
    if (this.#world.has(this.#index, 'pause')) return;
    if (this.#wasDown) {
      if (this.#world.has(this.#index, 'api')) return;
      this.#wasDown = false;
      this.#begin();
    }
    if (!this.#world.has(this.#index, 'watch') && !this.#world.has(this.#index, 'api')) {
      // In order, as watches are.
      while (this.inbox[0] !== undefined && this.inbox[0].at <= now) {
        const { name, stored } = this.inbox[0];
        this.inbox.shift();
        this.#see(name, stored);
      }
    }
    if (now - this.#renewedAt >= renewEveryMs && !this.#isWriting) this.#renew();
    this.#giveBack();
    this.#ask();
    if (now % tick === 0) this.#sync();
  }

  #members(): Map<string, Stored> {
    return new Map([...this.#cache].filter(([, { isHeld }]) => isHeld));
  }

  #see(name: string, stored: Stored): void {
    const { now } = this.#world;
    if ((this.#cache.get(name)?.version ?? 0) >= stored.version) return;
    this.#cache.set(name, stored);
    if (name === this.name) {
      if (now - this.#seenAt > 3 * renewEveryMs) this.#liveness.resume(now);
      this.#seenVersion = stored.version;
      this.#seenAt = now;
      this.#blindSince = undefined;
      this.#count();
    } else this.#liveness.observe(name, stored.isHeld ? String(stored.version) : undefined, now);
  }

  get #isCurrent(): boolean {
    const { now } = this.#world;
    return this.fence.isOpen(now) && !this.fence.hasLostAPI(now);
  }

  #count(): void {
    const renewal = this.#unseen.get(this.#seenVersion);
    if (renewal === undefined) return;
    this.renewedAt = renewal.sentAt;
    this.fence.renewed(renewal);
  }

  /** A request to the API server, which may come late, or be lost on its way or on that of the answer. */
  #call(request: () => void, answer: (isAnswered: boolean) => void): void {
    const world = this.#world;
    const incarnation = this.#incarnation;
    const isLost = (): boolean => world.has(this.#index, 'api');
    world.after(world.delay(), () => {
      if (!isLost()) request();
      const back = (isAnswered: boolean): void => {
        if (incarnation !== this.#incarnation) return;
        // A process in a pause reads the answer later.
        if (world.has(this.#index, 'pause')) world.after(pass, () => back(isAnswered));
        else answer(isAnswered);
      };
      world.after(world.delay(), () => back(!isLost()));
    });
  }

  #renew(): void {
    const world = this.#world;
    const sentAt = world.now;
    if (this.#blindSince !== undefined && sentAt - this.#blindSince > 3 * renewEveryMs) return;
    this.#renewedAt = sentAt;
    this.#isWriting = true;
    const voters = votersOf(this.name, this.#members());
    const announced = new Set(this.kernel.keys());
    const renewal = this.fence.renewing(voters.keys(), sentAt);
    if (this.#known === undefined) {
      const stored = world.stored.get(this.name);
      this.#known = {
        version: stored?.version ?? 0,
        acquired: stored?.isHeld === true ? stored.acquired : undefined,
      };
    }
    const { version } = this.#known;
    const acquired = this.#known.acquired ?? `${this.name} ${sentAt}`;
    let made: number | undefined;
    this.#call(
      () => {
        made = world.write(this.name, version, { isHeld: true, acquired, voters, announced });
      },
      (isAnswered) => {
        this.#isWriting = false;
        if (!isAnswered || made === undefined) {
          this.#known = undefined;
          this.#renewedAt = Number.NEGATIVE_INFINITY;
          return;
        }
        this.#known = { version: made, acquired };
        if (made !== this.#seenVersion) this.#blindSince ??= world.now;
        this.#unseen.set(made, renewal);
        this.#count();
      },
    );
  }

  #giveBack(): void {
    const { now } = this.#world;
    if (!this.#isCurrent || now % tick !== 0) return;
    for (const name of expiredMembers(this.name, this.#members(), (node) =>
      this.#liveness.isAlive(node, now),
    )) {
      const known = this.#cache.get(name);
      if (known === undefined) continue;
      this.#call(
        () => this.#world.write(name, known.version, { ...known, isHeld: false }),
        () => undefined,
      );
    }
  }

  #ask(): void {
    const world = this.#world;
    const { now } = world;
    this.fence.hold(now);
    if (now - this.#askedAt < askEveryMs) return;
    this.#askedAt = now;
    const own = [...new Set([...this.#wanted, ...this.kernel.keys()])];
    const incarnation = this.#incarnation;
    for (const voter of this.fence.toAsk(now)) {
      const other = world.nodes.find(({ name }) => name === voter);
      this.#send(other, () => {
        const except = other?.consent(this.name, own);
        if (except === undefined) return;
        if (other !== undefined)
          other.#send(this, () => {
            if (incarnation !== this.#incarnation) return;
            for (const address of except) this.#wanted.delete(address);
            this.fence.consented(voter, now, world.now);
          });
      });
    }
  }

  #send(to: Agent | undefined, deliver: () => void): void {
    const world = this.#world;
    if (to === undefined || world.has(this.#index, 'heartbeats')) return;
    const arrive = (): void => {
      if (to.#isDown || to.#wasDown || world.has(to.#index, 'heartbeats')) return;
      if (world.has(to.#index, 'pause')) world.after(pass, arrive);
      else deliver();
    };
    world.after(world.delay(), arrive);
  }

  consent(node: string, asked: readonly string[]): readonly string[] | undefined {
    const { now } = this.#world;
    if (!this.fence.hasLostAPI(now) || !this.#liveness.promise(node, now)) return undefined;
    const common = asked.filter((address) => this.#wanted.has(address) || this.kernel.has(address));
    const kept = common.filter((address) => ownerOf(address, [this.name, node]) === this.name);
    for (const address of common) if (!kept.includes(address)) this.#wanted.delete(address);
    return kept;
  }

  #sync(): void {
    const { now } = this.#world;
    if (this.#isCurrent) {
      const members = this.#members();
      const able = [...members.keys()].filter((name) => isAdmitted(name, members));
      const stale = [...members].filter(([name]) => name !== this.name && !this.#liveness.isFresh(name, now));
      this.#wanted = new Set(
        addresses.filter((address) => {
          const owner = ownerOf(address, able);
          const has = this.kernel.has(address);
          if (owner === this.name) return has || !stale.some(([, { announced }]) => announced.has(address));
          const others = [...members].flatMap(([name, { announced }]) =>
            name !== this.name && announced.has(address) && this.#liveness.isFresh(name, now) ? [name] : [],
          );
          return has && owner !== undefined && keepsInMove(address, this.name, owner, others);
        }),
      );
    } else if (!this.fence.isOpen(now)) this.#wanted = new Set();
    const seconds = this.fence.lifetime(now);
    for (const address of this.kernel.keys()) if (!this.#wanted.has(address)) this.kernel.delete(address);
    if (seconds === 0) return;
    for (const address of this.#wanted) this.kernel.set(address, now + seconds * 1000 + 280);
  }
}

/** What was seen of an address. */
interface Seen {
  /** Milliseconds in which two nodes had it, at most in a row. */
  shared: number;
  /** Milliseconds since the last renewal of a node that had it when another one got it, at most. */
  stalest: number;
  /** Milliseconds in which no node had it after the first one did, at most in a row. */
  away: number;
}

function run(world: World, until: number): ReadonlyMap<string, Seen> {
  const found = new Map(addresses.map((address) => [address, { shared: 0, stalest: 0, away: 0 }]));
  const sharedFor = new Map<string, number>();
  const awayFor = new Map<string, number>();
  const before = new Map<string, readonly Agent[]>();
  while (world.now < until) {
    world.step();
    for (const [address, seen] of found) {
      const holders = world.nodes.filter(({ kernel }) => kernel.has(address));
      const former = before.get(address) ?? [];
      const shared = holders.length > 1 ? (sharedFor.get(address) ?? 0) + pass : 0;
      sharedFor.set(address, shared);
      seen.shared = Math.max(seen.shared, shared);
      if (holders.some((agent) => !former.includes(agent))) {
        for (const agent of holders.filter((one) => former.includes(one)))
          seen.stalest = Math.max(seen.stalest, world.now - agent.renewedAt);
      }
      const away = holders.length === 0 && before.has(address) ? (awayFor.get(address) ?? 0) + pass : 0;
      awayFor.set(address, away);
      seen.away = Math.max(seen.away, away);
      if (holders.length > 0 || before.has(address)) before.set(address, holders);
    }
  }
  return found;
}

const faults = fc.array(
  fc.record({
    node: fc.integer({ min: 0, max: 3 }),
    of: fc.constantFrom('api', 'watch', 'heartbeats', 'pause', 'restart', 'absent' as const),
    from: fc.integer({ min: 0, max: 20_000 }),
    lasts: fc.oneof(fc.integer({ min: 50, max: 4000 }), fc.integer({ min: 4000, max: 30_000 })),
  }),
  { minLength: 1, maxLength: 12 },
);
const delays = fc.array(
  fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 1, max: 60 }) }, fc.integer({ min: 60, max: 900 })),
  { minLength: 5, maxLength: 40 },
);

describe('agents that lose the API server, messages and time', () => {
  test('have an address twice only while it moves between two that renew their Leases, and not for long', () => {
    fc.assert(
      fc.property(faults, delays, (wrong, late) => {
        for (const [address, { shared, stalest }] of run(new World(4, wrong, late), 30_000)) {
          expect(stalest, address).toBeLessThan(leaseLastsMs);
          expect(shared, address).toBeLessThanOrEqual(leaseLastsMs + renewEveryMs + 4 * Math.max(...late));
        }
      }),
      { numRuns: Number(process.env['RUNS'] ?? 60) },
    );
  });

  test('have each address once when all is well again', () => {
    fc.assert(
      fc.property(faults, delays, (wrong, late) => {
        const world = new World(
          4,
          wrong.map((fault) => ({ ...fault, lasts: Math.min(fault.lasts, 20_000 - fault.from) })),
          [...late.map((milliseconds) => Math.min(milliseconds, 100))],
        );
        run(world, 30_000);
        for (const address of addresses) {
          const holders = world.nodes.filter(({ kernel }) => kernel.has(address)).map(({ name }) => name);
          expect(holders).toEqual([
            ownerOf(
              address,
              world.nodes.map(({ name }) => name),
            ),
          ]);
        }
      }),
      { numRuns: Number(process.env['RUNS'] ?? 60) },
    );
  });

  const everywhere = (of: Fault['of'], from: number, lasts: number, nodes = [0, 1, 2]): readonly Fault[] =>
    nodes.map((node) => ({ node, of, from, lasts }));

  test.each<[string, readonly Fault[], number]>([
    ['lose nothing while all have lost the API server, and consent', everywhere('api', 5000, 20_000), 0],
    [
      'lose nothing where some lose it a moment earlier, and others have it back first',
      everywhere('api', 5000, 15_000).map((fault, n) => ({
        ...fault,
        from: 5000 + 100 * n,
        lasts: 15_000 + 300 * n,
      })),
      0,
    ],
    [
      'have their addresses back within 3 s after one of them has died',
      [{ node: 0, of: 'absent', from: 5000, lasts: 30_000 }],
      3000,
    ],
    ['and after one has lost the API server', [{ node: 0, of: 'api', from: 5000, lasts: 30_000 }], 3000],
    [
      'let go when no heartbeat arrives, and no node has the API server',
      [...everywhere('api', 5000, 10_000), ...everywhere('heartbeats', 5000, 10_000)],
      10_000,
    ],
  ])('%s', (_, wrong, longest) => {
    for (const [address, { away, shared }] of run(new World(3, wrong, [10, 30, 20]), 30_000)) {
      expect(away, address).toBeLessThanOrEqual(longest);
      expect(shared, address).toBeLessThan(500);
    }
  });
});
