import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import type { Command } from '../../src/node/nftables/elements.ts';
import { Nft } from '../../src/node/nftables/nft.ts';
import { residentLimit } from '../../src/node/nftables/nft.ts';
import { listAt } from '../../src/objects/json.ts';
import { forMakers } from './support/for-makers.ts';
import { processesOf, residentNft } from './support/processes.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';

const set = { family: 'ip', table: 'servicenet', name: 'addresses' };

forMakers('the nft that stays', (maker) => {
  let network: TestNetwork;
  let host: Host;
  /** Scripts and programs that the host was given to run. */
  let runs: string[];

  beforeAll(async () => {
    network = await startNetwork(maker, { 'node-1': [] });
    host = network.at('node-1').machine.host;
    await new Nft(host).run([
      { add: { table: { family: set.family, name: set.table } } },
      { add: { set: { ...set, type: 'ipv4_addr' } } },
    ]);
  });
  afterAll(() => network.close());

  /** nft of the host, as it is counted; or of another machine, if it is given what this one is asked. */
  function nftOf(change: (args: readonly string[]) => readonly string[] = (args) => args): Nft {
    runs = [];
    const exec: Host['exec'] = (program, args, options) => {
      runs.push(args.join(' '));
      return host.exec(program, change(args), options);
    };
    return new Nft({ ...host, exec });
  }

  it('does small transactions one after the other', async () => {
    const nft = nftOf();
    for (let i = 1; i <= 50; i++) await nft.runAll(transactions(add(`192.0.2.${i}`)));
    for (let i = 2; i <= 50; i++) await nft.runAll(transactions(remove(`192.0.2.${i}`)));
    expect(await elements()).toEqual(['192.0.2.1']);
    // It is asked once what it says when all is well.
    expect(runs.filter((run) => run.includes(residentNft))).toHaveLength(2);
    expect(runs).toHaveLength(2);
    await nft.close();
    expect(await residents()).toEqual([]);
    await new Nft(host).run([remove('192.0.2.1')]);
  });

  it('does all of a transaction or nothing, says why, and goes on', async () => {
    const nft = nftOf();
    await nft.runAll(transactions(add('192.0.2.1')));
    const halfWrong = transaction(add('192.0.2.2'), remove('192.0.2.99'));
    await expect(nft.runAll(Readable.from([halfWrong]))).rejects.toThrow(/^nft: .*No such file or directory/);
    expect(await elements()).toEqual(['192.0.2.1']);
    await expect(nft.runAll(Readable.from(['{"nftables":[']))).rejects.toThrow(/^nft: .*[Ee]rror/);
    await nft.runAll(transactions(remove('192.0.2.1')));
    expect(await elements()).toEqual([]);
    await nft.close();
  });

  it('sees what others have changed meanwhile', async () => {
    const nft = nftOf();
    await nft.runAll(transactions(add('192.0.2.1')));
    await new Nft(host).runText(
      'delete table ip servicenet; add table ip servicenet; add set ip servicenet addresses { type ipv4_addr . inet_service; }',
    );
    const pair = { concat: ['192.0.2.1', 80] };
    await nft.runAll(transactions({ add: { element: { ...set, elem: [pair] } } }));
    expect(await elements()).toEqual([pair]);
    await new Nft(host).runText(
      'delete table ip servicenet; add table ip servicenet; add set ip servicenet addresses { type ipv4_addr; }',
    );
    await nft.runAll(transactions(add('192.0.2.1')));
    await nft.runAll(transactions(remove('192.0.2.1')));
    await nft.close();
  });

  it('fails what it was doing when it is killed, and the next transaction starts it again', async () => {
    const nft = nftOf();
    await nft.runAll(transactions(add('192.0.2.1')));
    const [pid = ''] = await residents();
    await host.exec('kill', ['-STOP', pid]);
    const stopped = nft.runAll(transactions(add('192.0.2.2')));
    const failed = expect(stopped).rejects.toThrow(/^nft: .*nft -j -i.* has ended with 137$/);
    await host.exec('kill', ['-KILL', pid]);
    await failed;
    expect(await elements()).toEqual(['192.0.2.1']);
    await nft.runAll(transactions(add('192.0.2.2')));
    expect(await residents()).not.toContain(pid);
    // Killed while it does nothing.
    const [next = ''] = await residents();
    await host.exec('kill', ['-KILL', next]);
    await expect.poll(residents).toEqual([]);
    await nft.runAll(transactions(remove('192.0.2.1'))).catch(() => undefined);
    await nft.runAll(transactions(remove('192.0.2.2')));
    await nft.close();
    await new Nft(host).run([{ flush: { set } }]);
  });

  it.for([
    [
      'has no interactive mode',
      'nft() { echo "Error: interactive CLI not supported in this build"; exit 1; }',
    ],
    ['repeats its input', 'nft() { tee /dev/stderr | command nft "$@"; }'],
    ['says something at its start', 'nft() { echo "No entry for terminal type"; command nft "$@"; }'],
  ] as const)('is not used where nft %s', async ([, odd]) => {
    const nft = nftOf(([option = '', script = '', ...rest]) =>
      script.includes(' -i ')
        ? [option, `${odd}\n${script.replace('exec nft', 'nft')}`]
        : [option, script, ...rest],
    );
    await nft.runAll(transactions(add('192.0.2.1')));
    await nft.runAll(transactions(remove('192.0.2.1')));
    expect(await elements()).toEqual([]);
    expect(runs.filter((run) => run.includes(residentNft))).toHaveLength(1);
    expect(runs.filter((run) => run.includes('nft -j -f'))).toHaveLength(2);
    await nft.close();
  });

  it('is for one small transaction: several, and large ones, go to a program for each', async () => {
    const nft = nftOf();
    await nft.runAll(transactions(add('192.0.2.1'), remove('192.0.2.1')));
    const many = Array.from({ length: 1000 }, (_, i) => `198.51.${100 + (i >> 8)}.${i & 255}`);
    expect(transaction(add(...many)).length).toBeGreaterThan(residentLimit);
    await nft.runAll(transactions(add(...many)));
    expect((await elements()).length).toBe(1000);
    expect(runs.some((run) => run.includes(' -i '))).toBe(false);
    await nft.runAll(transactions(remove(...many)));
    await nft.close();
  });

  it.each(['busybox', 'the machine'])('does each of several with shell and tools of %s', async (tools) => {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-tools-'));
    await chmod(folder, 0o755);
    try {
      if (tools === 'busybox') await promisify(execFile)('busybox', ['--install', '-s', folder]);
      const path = `PATH=${folder}:${process.env['PATH'] ?? ''}`;
      const exec: Host['exec'] = async (program, args, options) => {
        if (program !== 'sh' || !args.join(' ').includes('nft -j -f'))
          return host.exec(program, args, options);
        // All of it is there to be read at once.
        let input = '';
        for await (const piece of options?.input ?? []) input += piece;
        return host.exec('env', [path, program, ...args], { ...options, input });
      };
      const nft = new Nft({ ...host, exec });
      const many = Array.from({ length: 3000 }, (_, i) => `198.51.${100 + (i >> 8)}.${i & 255}`);
      const all = transactions(add('192.0.2.1'), add(...many), add('192.0.2.2'), remove(...many));
      expect(await nft.runAll(all)).toBe(4);
      expect(await elements()).toEqual(['192.0.2.1', '192.0.2.2']);
      await nft.runAll(transactions(remove('192.0.2.1'), remove('192.0.2.2')));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('fails where what it was given was not done to the end', async () => {
    const nft = nftOf(([option = '', script = '', ...rest]) => [
      option,
      // The rest of the input is lost behind the first transaction.
      `cut() { "$@"; cat >/dev/null; }\n${script.replace('do dd', 'do cut dd').replace('do head', 'do cut head')}`,
      ...rest,
    ]);
    await expect(nft.runAll(transactions(add('192.0.2.1'), add('192.0.2.2')))).rejects.toThrow(
      'nft was given 1 of 2 transactions',
    );
    expect(await elements()).toEqual(['192.0.2.1']);
    await new Nft(host).run([remove('192.0.2.1')]);
  });

  it('needs neither a terminal nor a home directory, and keeps no file of what it was given', async () => {
    const words = ['-i', 'sh', '-c'];
    const nft = new Nft({
      ...host,
      exec: (program, args, options) =>
        program === 'sh' && args[1]?.includes(' -i ') === true
          ? host.exec('env', [...words, `PATH=${process.env['PATH'] ?? ''}; cd /; ${args[1]}`], options)
          : host.exec(program, args, options),
    });
    await nft.runAll(transactions(add('192.0.2.1')));
    expect(await residents()).toHaveLength(1);
    await nft.runAll(transactions(remove('192.0.2.1')));
    await nft.close();
    expect((await host.exec('ls', ['/.nft.history'])).exitCode).not.toBe(0);
  });

  function residents(): Promise<readonly string[]> {
    return processesOf(host, residentNft);
  }

  async function elements(): Promise<readonly unknown[]> {
    const listed: unknown = JSON.parse(
      (await new Nft(host).list([], 'set', set.family, set.table, set.name)) ?? '{}',
    );
    return listAt(listed, 'nftables').flatMap((item) => listAt(item, 'set', 'elem'));
  }
});

function add(...elem: readonly string[]): Command {
  return { add: { element: { ...set, elem } } };
}

function remove(...elem: readonly string[]): Command {
  return { delete: { element: { ...set, elem } } };
}

function transaction(...commands: readonly Command[]): string {
  return JSON.stringify({ nftables: commands });
}

/** A transaction for each command. */
function transactions(...commands: readonly Command[]): Readable {
  return Readable.from(commands.map((command) => transaction(command)));
}
