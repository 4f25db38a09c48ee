import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Host } from '../../../src/host/host.ts';
import { nftScripts } from '../../../src/node/nftables/nft.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { FakeNft } from '../../support/fake-nft.ts';
import { goldenCases, playGolden } from '../../support/golden-cases.ts';
import { parseListing, printListing } from '../../support/nft-listing.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';

const missing = missingFor('user');

/** Names of chains that are words of nft's language: JSON may have them, text may not. */
const wordsOfNft = /\b(chain|rule|goto|jump) (\S+ \S+ )?(reject|dscp)\b/;

describe.skipIf(missing !== '')(
  `the fake nft, beside a real one${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let network: TestNetwork;
    let host: Host;
    let other: Host;
    beforeAll(async () => {
      network = await startNetwork('user', { 'node-1': [], 'node-2': [] });
      host = network.at('node-1').machine.host;
      other = network.at('node-2').machine.host;
    });
    beforeEach(async () => {
      for (const each of [host, other]) await each.exec('nft', ['flush', 'ruleset']);
    });
    afterAll(() => network.close());

    async function listing(of: Host): Promise<string> {
      const { stdout } = await of.exec('nft', ['list', 'ruleset']);
      return printListing(parseListing(stdout));
    }

    /** @returns what nft says; "": all is well. */
    async function send(to: Host, input: string): Promise<string> {
      const script = input.startsWith('{') ? 'cat | nft -j -f -' : nftScripts.text;
      const { stderr } = await to.exec('sh', ['-c', script], { input });
      return stderr;
    }

    /** What programs read of the listing in JSON: sets with their elements, and chains with the numbers of their rules. */
    async function items(of: Host): Promise<readonly string[]> {
      const { stdout } = await of.exec('nft', ['-j', 'list', 'ruleset']);
      const rules = new Map<string, number>();
      const found = listAt(JSON.parse(stdout), 'nftables').flatMap((item) => {
        for (const kind of ['set', 'map']) {
          const name = textAt(item, kind, 'name');
          const elements = listAt(item, kind, 'elem').map((each) => JSON.stringify(each));
          if (name !== '')
            return `${kind} ${textAt(item, kind, 'table')} ${name}: ${elements.toSorted().join(' ')}`;
        }
        const chain = `${textAt(item, 'rule', 'table')} ${textAt(item, 'rule', 'chain')}`;
        if (chain !== ' ') rules.set(chain, (rules.get(chain) ?? 0) + 1);
        const name = textAt(item, 'chain', 'name');
        return name === '' ? [] : `chain ${textAt(item, 'chain', 'table')} ${name}`;
      });
      return [...found, ...Array.from(rules, ([chain, count]) => `${count} rules of ${chain}`)].toSorted();
    }

    it.each(goldenCases)('lists what agents write as the real one does: $folder, $name', async (golden) => {
      const { nft } = await playGolden(golden);
      for (const input of nft.inputs) expect(await send(host, input)).toBe('');
      expect(nft.listing()).toBe(await listing(host));
      expect(await items(nft.host)).toEqual(await items(host));
      for (const [index, commands] of nft.transactions.entries()) {
        const text = commands.join('\n');
        expect(await send(other, wordsOfNft.test(text) ? (nft.inputs[index] ?? '') : text), text).toBe('');
      }
      expect(nft.listing(), 'as text').toBe(await listing(other));
    });

    const frame = `add table ip t
add map ip t m { type inet_service : verdict; }
add map ip t n { type ipv4_addr . inet_service : ipv4_addr; }
add set ip t s { type ipv4_addr; }
add set ip t r { type ipv4_addr; flags interval; }
add set ip t p { type ipv4_addr . inet_service . ipv4_addr; flags interval; }
add chain ip t c
add chain ip t d
add element ip t m { 80 : goto c }
add element ip t n { 10.0.0.1 . 80 : 10.0.0.2 }
add element ip t s { 10.0.0.1 }
add element ip t r { 10.0.0.0/24 }
add element ip t p { 10.0.0.1 . 80 . 10.0.0.0/24 }`;

    it.each([
      ['the same element again', 'add element ip t n { 10.0.0.1 . 80 : 10.0.0.2 }', true],
      ['the same range again', 'add element ip t r { 10.0.0.0/24 }', true],
      ['an element with another value', 'add element ip t n { 10.0.0.1 . 80 : 10.0.0.3 }', false],
      ['an element with another chain', 'add element ip t m { 80 : goto d }', false],
      [
        'another value behind a deletion',
        'delete element ip t m { 80 }\nadd element ip t m { 80 : goto d }',
        true,
      ],
      ['the deletion of an element that is not there', 'delete element ip t s { 10.0.0.2 }', false],
      ['an element of a chain that is not there', 'add element ip t m { 81 : goto nowhere }', false],
      ['an element of another type', 'add element ip t m { 10.0.0.1 : goto c }', false],
      ['an element with a part missing', 'add element ip t n { 10.0.0.1 : 10.0.0.2 }', false],
      ['a range of a set without ranges', 'add element ip t s { 10.1.0.0/24 }', false],
      ['an element of a map without a value', 'add element ip t m { 82 }', false],
      ['an element of no set', 'add element ip t nowhere { 82 }', false],
      ['a range in another', 'add element ip t r { 10.0.0.0/25 }', false],
      ['a range around another', 'add element ip t r { 10.0.0.0/16 }', false],
      ['a range beside another', 'add element ip t r { 10.0.1.0/24 }', true],
      ['a concatenated range in another', 'add element ip t p { 10.0.0.1 . 80 . 10.0.0.7 }', false],
      ['a concatenated range of another port', 'add element ip t p { 10.0.0.1 . 81 . 10.0.0.7 }', true],
      ['the deletion of a chain in use', 'delete chain ip t c', false],
      ['the deletion of a chain that nothing leads to', 'delete chain ip t d', true],
      [
        'the deletion of a chain behind what leads to it',
        'delete element ip t m { 80 }\ndelete chain ip t c',
        true,
      ],
      ['a table again', 'add table ip t', true],
      ['a set again, of another type', 'add set ip t s { type ipv6_addr; }', false],
      ['the deletion of a table that is not there', 'delete table ip nowhere', false],
      [
        'nothing of a transaction with one mistake',
        'add element ip t s { 10.9.9.9 }\ndelete chain ip t c',
        false,
      ],
    ] as const)('takes or refuses as the real one does: %s', async (_, text, isTaken) => {
      const nft = new FakeNft();
      nft.apply(frame);
      expect(await send(host, frame)).toBe('');
      expect(nft.listing()).toBe(await listing(host));
      const said = await send(host, text);
      expect(said === '', said).toBe(isTaken);
      if (isTaken) nft.apply(text);
      else expect(() => nft.apply(text)).toThrow();
      expect(nft.listing()).toBe(await listing(host));
    });
  },
);
