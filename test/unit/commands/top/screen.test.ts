import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keysOf } from '../../../../src/commands/top/terminal.ts';
import { type Content, lastAnswer, targetOf } from '../../../../src/commands/top/lists.ts';
import { type Frame, renderScreen } from '../../../../src/commands/top/screen.ts';
import { firstLook, type Look, pressed, tabs } from '../../../../src/commands/top/state.ts';
import { rowsOf } from '../../../../src/commands/top/text.ts';
import type { EventRow, NodeRow, PoolRow, ProblemRow } from '../../../../src/view/rows/rows.ts';
import { type ExampleService, exampleGroups } from '../../../page/support/example.ts';
import { contentOf, servicesOf } from './rows-of-top.ts';

const why = {
  ...{ reason: 'PodsNotReady', message: 'none of them is ready' },
  checks: [
    { isMet: true, message: 'the selector app=pay matches 2 Pods' },
    { isMet: false, message: 'none of them is ready' },
  ],
};
const shop: readonly ExampleService[] = [
  { name: 'cart', clusterIP: '10.96.250.77', pods: ['ready', 'ready'] },
  {
    ...{ name: 'pay', clusterIP: '10.96.7.1', pods: ['not ready', 'not ready'] },
    service: { trouble: why, whyNoEndpoint: why },
  },
  {
    ...{ name: 'storefront', type: 'LoadBalancer', clusterIP: '10.96.248.64', external: '192.0.2.1' },
    ...{ ports: '80:30479/TCP,443:31867/TCP,8443:31868/TCP', pods: ['ready'] },
  },
  { name: 'kube-dns', namespace: 'kube-system', clusterIP: '10.96.0.10', pods: ['ready'] },
];
const node: NodeRow = {
  ...{ key: 'node-1', name: 'node-1', isReady: true, isCordoned: false, addresses: ['172.18.0.2'] },
  ...{ podCIDRs: ['10.244.0.0/24'], pods: 4, created: '' },
};
const problem: ProblemRow = {
  ...{ key: 'PodsNotReady Service shop/pay', about: { kind: 'Service', namespace: 'shop', name: 'pay' } },
  ...{ reason: 'PodsNotReady', message: 'none of them is ready', since: '2026-01-01T12:00:00Z' },
};
function event(second: number, message = 'Container created'): EventRow {
  return {
    ...{ key: `shop/e${second}`, time: `2026-01-01T12:34:${second}Z`, count: 1, warning: false },
    ...{
      reason: 'Created',
      message,
      about: { kind: 'Pod', namespace: 'shop', name: 'pay-1' },
      source: 'kubelet',
    },
  };
}
const pool: PoolRow = {
  ...{ key: 'default', name: 'default', addresses: ['192.0.2.0/24'], problems: [] },
  families: [{ family: 'IPv4', total: 254, used: 1, free: 253, quarantined: 0 }],
};

const content = contentOf({
  ...{ ...servicesOf(...shop), node: [node], problem: [problem], pool: [pool] },
  event: [event(10), event(11)],
});

const usual: Frame = { title: ['title'], hints: [], size: { columns: 80, rows: 23 }, colour: false };

/** The screen after keys. */
function screen(sent = '', of: Content = content, frame: Partial<Frame> = {}): readonly string[] {
  const whole = { ...usual, ...frame };
  let look: Look = of.flows === undefined ? firstLook : { ...firstLook, tabs };
  let { lines, seen } = renderScreen(of, look, whole);
  for (const key of keysOf(sent).keys) {
    look = pressed(look, key, seen);
    ({ lines, seen } = renderScreen(of, look, whole));
  }
  return lines;
}

/** What stands in the first column of a table. */
function named(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => /^[> ][! ] (\S+\/\S+)/.exec(line)?.[1] ?? []);
}

describe('at 80 columns', () => {
  it('the first list has Services, problems first, with pools above and the last Events below', () => {
    expect(screen()).toEqual([
      'title',
      '4 Services, 1 without ready endpoints, 1 of 1 node ready',
      '[1 Services]  2 Pods  3 Nodes  4 Policies  5 Addresses  6 Problems 1  7 Events',
      '',
      'pool default  IPv4  [#...................]  1 of 254 used',
      '',
      '   SERVICE               CLUSTER-IP    EXTERNAL-IP  READY  PROBLEM',
      '>! shop/pay              10.96.7.1     <none>       0/2    PodsNotReady',
      '   kube-system/kube-dns  10.96.0.10    <none>       1/1',
      '   shop/cart             10.96.250.77  <none>       2/2',
      '   shop/storefront       10.96.248.64  192.0.2.1    1/1',
      '',
      '12:34:10  Pod shop/pay-1  Created  Container created',
      '12:34:11  Pod shop/pay-1  Created  Container created',
      '',
      '? keys  q quit  Tab next  Enter details  / filter  n namespace  p by name  t way',
    ]);
  });

  it('each list names what it has', () => {
    expect(named(screen('2'))).toEqual(
      [...content.tables.pod.keys()].toSorted((a, b) => {
        const rank = (key: string) => (key.includes('pay') ? 0 : 1);
        return rank(a) - rank(b) || (a < b ? -1 : 1);
      }),
    );
    expect(screen('3')).toContain('>  node-1  Ready  4     172.18.0.2  10.244.0.0/24');
    expect(screen('4')).toContain('There are none.');
    expect(screen('5')).toContain('>  192.0.2.0/24  AddressPool  default  IPv4 1 of 254 used');
    expect(screen('6')).toContain('>! PodsNotReady  Service shop/pay  none of them is ready');
    // The newest first.
    expect(
      screen('7')
        .filter((line) => line.includes('12:34:'))
        .map((line) => line.slice(3, 11)),
    ).toEqual(['12:34:11', '12:34:10']);
  });

  it('details say why there is no endpoint, in the words of the page', () => {
    const lines = screen('\r');
    expect(lines).toEqual(
      expect.arrayContaining([
        'Service shop/pay',
        'Why no endpoint: PodsNotReady',
        '  ✓ the selector app=pay matches 2 Pods',
        '  ✗ none of them is ready',
        'Cluster IP    10.96.7.1',
      ]),
    );
    // The same from the list of problems.
    expect(screen('6\r')).toEqual(expect.arrayContaining(['Why no endpoint: PodsNotReady']));
  });

  it('a filter leaves the rows with all its words, and says of how many', () => {
    const lines = screen('/SHOP ready');
    expect(named(lines)).toEqual(['shop/pay']);
    expect(lines).toContain('filter: SHOP ready_');
    expect(lines).toContain('   rows 1 to 1 of 1 of 4 that have the words of the filter');
    expect(named(screen('/192.0.2.1\r'))).toEqual(['shop/storefront']);
    expect(named(screen('/app=cart\r'))).toEqual(['shop/cart']);
    expect(screen('/nothing like this')).toContain('No row has these words: Esc shows all.');
  });

  it('one namespace is shown, or all', () => {
    const namespace = ['kube-system', 'shop'].map((name) => ({ key: name, name, services: 1, pods: 2 }));
    const of = { ...content, tables: contentOf({ namespace }).tables };
    const both = { ...content, tables: { ...content.tables, namespace: of.tables.namespace } };
    expect(screen('n', both)).toEqual(expect.arrayContaining(['>  all          2         4']));
    const lines = screen('nj\r', both);
    expect(named(lines)).toEqual(['kube-system/kube-dns']);
    expect(lines).toContain('namespace: kube-system');
  });

  it('by name, problems are among the others', () => {
    expect(named(screen('p'))[0]).toBe('kube-system/kube-dns');
  });
});

describe('nothing is cut', () => {
  const long = 'n'.repeat(253);
  const ports = Array.from({ length: 100 }, (_, index) => `${8000 + index}/TCP`).join(',');
  const many = contentOf({
    ...servicesOf(
      { name: long, clusterIP: 'fd00:10:96::aaaa:bbbb,10.96.0.1', pods: ['ready'], ports },
      { name: 'b', clusterIP: '10.96.0.2', pods: ['ready'] },
    ),
    event: [event(10, `the message ${'m'.repeat(200)} ends`)],
  });

  it('a name goes on in further lines, beside short ones that stay in their columns', () => {
    const lines = screen('', many).map((line) => line.slice(3));
    const at = lines.findIndex((line) => line.startsWith('shop/nn'));
    const name = lines.slice(at).map((line) => line.slice(0, 48).trimEnd());
    expect(name.join('')).toContain(`shop/${long}`);
    expect(lines.find((line) => line.startsWith('shop/b '))).toMatch(/1\/1$/);
  });

  it('what a cell sums up is whole in the details, and so are messages', () => {
    const table = screen('', many, { size: { columns: 300, rows: 23 } }).join('\n');
    expect(table).toMatch(/8000\/TCP,8001\/TCP and 98 .*\n.* more\n/);
    // Each page of the details, until the last.
    const pages = Array.from({ length: 12 }, (_, at) =>
      screen(`G\r${'\u001b[6~'.repeat(at)}`, many).join('\n'),
    );
    for (const port of ports.split(','))
      expect(
        pages.some((page) => page.includes(port)),
        port,
      ).toBe(true);
    expect(screen('7', many).join('').replaceAll(/\s/g, '')).toContain(`themessage${'m'.repeat(200)}ends`);
  });

  it('what is to be copied is one line, which the terminal shows in several rows', () => {
    const copied = `export KUBECONFIG=/home/${'a'.repeat(100)}`;
    const hint = `  kubectl ${'b'.repeat(100)}`;
    const lines = screen('', content, {
      title: ['title', copied],
      hints: [hint],
      size: { rows: 30, columns: 80 },
    });
    expect(lines).toEqual(expect.arrayContaining([copied, hint]));
  });

  it('whole columns are left out, the least important first; a name never is', () => {
    const headings = [120, 80, 64, 50, 40, 20].map((columns) =>
      screen('', content, { size: { columns, rows: 40 } })
        .find((line) => line.includes('SERVICE'))
        ?.trim()
        .split(/\s+/),
    );
    expect(headings).toEqual([
      ['SERVICE', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)', 'READY', 'PROBLEM'],
      ['SERVICE', 'CLUSTER-IP', 'EXTERNAL-IP', 'READY', 'PROBLEM'],
      ['SERVICE', 'EXTERNAL-IP', 'READY', 'PROBLEM'],
      ['SERVICE', 'READY', 'PROBLEM'],
      ['SERVICE', 'READY'],
      ['SERVICE', 'READY'],
    ]);
  });

  it('a screen of any size is not left, whatever is shown and pressed', () => {
    const key = fc.constantFrom('j', 'G', '2', '5', '6', '7', '\r', '?', '/', 'x', 'n', 'p', '\t', ' ');
    const keys = fc.array(key, { maxLength: 6 });
    const sizes = fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 150 }));
    const hints = ['kubectl get services --all-namespaces'];
    fc.assert(
      fc.property(
        sizes,
        keys,
        fc.boolean(),
        fc.constantFrom(content, many),
        ([rows, columns], sent, colour, of) => {
          const lines = screen(sent.join(''), of, { size: { rows, columns }, colour, hints });
          expect(lines.reduce((sum, line) => sum + rowsOf(line, columns), 0)).toBeLessThanOrEqual(rows);
          const others = lines
            .map(stripVTControlCharacters)
            .filter((line) => !/title|kubectl|^Service |^Pod |^Node /.test(line));
          for (const line of others) expect(rowsOf(line, columns), line).toBe(1);
        },
      ),
    );
  });
});

describe('more rows than a screen has', () => {
  const count = 50;
  const services = servicesOf(
    ...Array.from({ length: count }, (_, index): ExampleService => {
      return { name: `web-${String(index).padStart(2, '0')}`, clusterIP: '10.96.0.1', pods: ['ready'] };
    }),
  );
  const of = contentOf(services);

  it('are pages, which say where one is, and each row is on one of them', () => {
    const found = new Set<string>();
    for (let presses = 0; presses < count; presses++) {
      const lines = screen('j'.repeat(presses), of);
      const names = named(lines);
      for (const name of names) found.add(name);
      const selected = lines.find((line) => line.startsWith('>'));
      expect(selected).toContain(services.service[presses]?.key);
      const first = names[0]?.slice(-2) ?? '';
      expect(lines).toContain(`   rows ${Number(first) + 1} to ${Number(first) + names.length} of ${count}`);
    }
    expect(found.size).toBe(count);
  });

  it('stay where they are while the selection goes through a page', () => {
    expect(named(screen('', of))).toEqual(named(screen('jjj', of)));
    expect(named(screen(' ', of))[0]).not.toBe(named(screen('', of))[0]);
  });
});

it('commands to try are at the end until the first key, as many as leave room for Services', () => {
  const hints = ['kubectl get services', 'kubectl get pods'];
  const shown = (rows: number, sent = '') =>
    screen(sent, content, { hints, size: { rows, columns: 100 } }).filter((line) =>
      line.startsWith('kubectl'),
    );
  expect([shown(24), shown(18), shown(12), shown(24, 'j')]).toEqual([hints, [hints[0]], [], []]);
});

it('says why nothing is heard of the server, what is still read, and what may not be', () => {
  const status = {
    loading: [{ kind: 'Pod', read: 2500 }],
    forbidden: ['NetworkPolicy', 'Lease'],
    disconnected: { message: 'no answer', since: '2026-01-01T12:34:56Z' },
  };
  expect(screen('', { ...content, status }).slice(1, 4)).toEqual([
    'no answer (since 12:34:56)',
    'reading: Pod 2,500',
    'may not be read: NetworkPolicy, Lease',
  ]);
});

it('says which Pod of a Service answered last, and how many of its answers were from there', () => {
  const counts = new Map([
    ['shop/web-a', 4],
    ['shop/web-b', 3],
  ]);
  const answers = [lastAnswer('shop/web', counts)];
  expect(screen('', { ...content, answers })).toContain('last answer of shop/web: web-b, 3 of 7');
});

it('shows the controls of an Event as signs', () => {
  const of = contentOf({ event: [event(10, 'a\u001b[31mb\u202ec')] });
  expect(screen('7', of).join('\n')).toContain('ab?c');
});

it('has a sign beside each colour', () => {
  const lines = screen('', content, { colour: true });
  const selected = lines.find((line) => line.includes('shop/pay'));
  expect(selected).toBe(
    '\u001b[7m>! shop/pay              10.96.7.1     <none>       0/2    PodsNotReady\u001b[27m',
  );
});

it('the way to a Service goes to its first port of TCP', () => {
  const content = contentOf(
    servicesOf(
      { name: 'dns', clusterIP: '10.96.0.10', ports: '53/UDP,5353:30053/TCP', pods: [] },
      { name: 'syslog', clusterIP: '10.96.0.11', ports: '514/UDP', pods: [] },
      { name: 'elsewhere', clusterIP: '<none>', ports: '<none>', pods: [] },
    ),
  );
  expect(
    ['dns', 'syslog', 'elsewhere'].map((name) => targetOf(content, { tab: 'services' }, `shop/${name}`)),
  ).toEqual([
    { to: 'svc/shop/dns:5353', protocol: 'TCP' },
    { to: 'svc/shop/syslog:514', protocol: 'UDP' },
    { to: 'svc/shop/elsewhere', protocol: 'TCP' },
  ]);
  expect(targetOf(content, { tab: 'events' }, 'shop/dns')).toBeUndefined();
});

describe('flows', () => {
  const watching = { key: 'flows', state: 'watching', total: 5 } as const;
  const withFlows = (watch: NonNullable<Content['flows']>['watch']): Content => ({
    ...content,
    flows: { watch, groups: exampleGroups },
  });

  it('have a list: what was denied first, with who decided, and the way of the selected one', () => {
    const lines = screen('6', withFlows(watching), { size: { columns: 200, rows: 23 } });
    const words = lines.filter((line) => line.includes('deploy/shop/cart'));
    expect(words.map((line) => /connected|opened|NXDOMAIN|refused|dropped/.exec(line)?.[0])).toEqual([
      ...['dropped', 'refused', 'NXDOMAIN', 'opened', 'connected'],
    ]);
    expect(words[0]).toMatch(
      /^>! deploy\/shop\/cart {2}svc\/shop\/catalog:80 .* NetworkPolicy shop\/catalog/,
    );
    const details = screen('6\r', withFlows(watching), { size: { columns: 200, rows: 23 } }).join('\n');
    expect(details).toContain('no rule matches');
    expect(details).toContain('trace deploy/shop/cart svc/shop/catalog:80');
    expect(targetOf(withFlows(watching), { tab: 'flows' }, 'dropped')).toEqual({
      ...{ from: 'deploy/shop/cart', to: 'svc/shop/catalog:80', protocol: 'TCP' },
    });
  });

  it('say why there are none, and that some are not shown', () => {
    const none = screen('6', {
      ...content,
      flows: { watch: { ...watching, state: 'ended', whyEnded: 'there is no nft' }, groups: [] },
    });
    expect(none).toContain('no flows: there is no nft');
    const trouble = { reason: 'FlowsSampled', message: '7 flows are not shown' };
    expect(screen('6', withFlows({ ...watching, trouble }))).toContain('FlowsSampled: 7 flows are not shown');
  });
});
