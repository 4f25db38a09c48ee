import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { Host } from '../../../../src/host/host.ts';
import { type ForeignChange, MonitorReader, TableWatch } from '../../../../src/node/nftables/table-watch.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeNft } from '../../../support/fake-nft.ts';

const own = 'add element ip servicenet service-ips { 10.96.0.1 . tcp . 80 : goto pick-1 }\n';
const end = '# new generation 7 by process 42 (nft)\n';

/** A watch of `ip servicenet` on a machine whose `nft monitor` prints what the test says. */
function watched() {
  const clock = new FakeClock();
  const changes: ForeignChange[] = [];
  let print: (text: string) => void = () => undefined;
  const host: Host = {
    ...new FakeNft().host,
    exec: (_program, _args, { output = () => undefined, signal } = {}) => {
      print = output;
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('stopped')));
      });
    },
  };
  const watch = new TableWatch({
    ...{ host, clock, log: pino({ level: 'silent' }), tables: ['ip servicenet'] },
    changed: (change) => changes.push(change),
  });
  watch.start();
  // Nobody knows what was before.
  expect(changes.splice(0)).toEqual(['perhaps']);
  return { watch, changes, clock, print: (text: string) => print(text) };
}

describe('a change of a table', () => {
  it('is somebody else’s where this process writes nothing', () => {
    const { changes, print, watch } = watched();
    print(`${own}${end}`);
    expect(changes).toEqual(['something']);
    watch.stop();
  });

  it('of another table is nothing to it', () => {
    const { changes, print, watch } = watched();
    print(`add element ip6 servicenet a { ::1 }\nadd chain ip other x\n${end}`);
    expect(changes).toEqual([]);
    watch.stop();
  });

  it('is that of the process while it writes, and as often as it has written afterwards, in pieces of any size', async () => {
    const { changes, print, watch } = watched();
    await watch.own(() => {
      print(`${own}${end}`);
      return Promise.resolve(3);
    });
    for (const character of `${own}${end}${own}${own}${end}`) print(character);
    expect(changes).toEqual([]);
    print(`${own}${end}`);
    expect(changes).toEqual(['something']);
    watch.stop();
  });

  it('is somebody else’s where there are more than it has written', async () => {
    const { changes, print, watch } = watched();
    await watch.own(() => {
      print(`${own}${end}${own}${end}`);
      return Promise.resolve(1);
    });
    expect(changes).toEqual(['something']);
    watch.stop();
  });

  it('may have been missed where events were lost, or own ones do not come', async () => {
    const { changes, clock, print, watch } = watched();
    print('# ERROR: We lost some netlink events!\n');
    expect(changes).toEqual(['perhaps']);
    await watch.own(() => Promise.resolve(1));
    await clock.advance(5000);
    expect(changes).toEqual(['perhaps', 'perhaps']);
    print(`${own}${end}`);
    expect(changes.at(-1)).toBe('something');
    watch.stop();
  });

  it('that replaces a rule is told from others', () => {
    const { changes, print, watch } = watched();
    print(
      `delete rule ip servicenet out handle 2\nadd rule ip servicenet out counter packets 0 bytes 0 drop\n${end}`,
    );
    print(`delete rule ip servicenet out handle 2\n${end}`);
    expect(changes).toEqual(['rules', 'something']);
    watch.stop();
  });
});

it('a reader tells of each transaction once', () => {
  const heard: string[] = [];
  const listener = {
    transaction: (changes: ReadonlyMap<string, unknown>) => heard.push([...changes.keys()].join()),
    missed: () => undefined,
  };
  new MonitorReader([listener]).read(`${own}delete table inet servicenet-policy\n${end}${end}`);
  expect(heard).toEqual(['ip servicenet,inet servicenet-policy', '']);
});
