import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  eventSummary,
  lastAnswer,
  poolRows,
  serviceRow,
  type View,
} from '../../../../src/commands/top/model.ts';
import { egressRows } from '../../../../src/commands/tables.ts';
import { renderScreen, rowsOf, serviceText } from '../../../../src/commands/top/screen.ts';
import { fit, plain } from '../../../../src/commands/top/screen.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Endpoint, EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import { anyCharacter } from '../../../support/any-character.ts';

function service(spec: Service['spec'] = {}, status: Service['status'] = {}): Service {
  return {
    metadata: { name: 'web', namespace: 'shop' },
    spec: {
      type: 'ClusterIP',
      clusterIPs: ['10.96.0.7'],
      ipFamilies: ['IPv4'],
      ports: [{ port: 80 }],
      ...spec,
    },
    status,
  };
}

function slice(
  addressType: string,
  conditions: readonly NonNullable<Endpoint['conditions']>[],
): EndpointSlice {
  const endpoints = conditions.map((each, i) => ({ addresses: [`10.0.0.${i}`], conditions: each }));
  return { metadata: { name: 's', namespace: 'shop' }, addressType, endpoints, ports: [] };
}

describe('serviceRow', () => {
  it('counts ready endpoints of the primary family; those that are leaving do not count', () => {
    const slices = [
      slice('IPv4', [{ ready: true }, { ready: false }, { ready: false, terminating: true }, {}]),
      slice('IPv6', [{ ready: true }]),
    ];
    expect(serviceRow(service(), slices)).toEqual({
      namespace: 'shop',
      name: 'web',
      type: 'ClusterIP',
      clusterIP: '10.96.0.7',
      external: '<none>',
      ports: '80/TCP',
      endpoints: { ready: 2, total: 3 },
    });
  });

  it('shows what is special', () => {
    const pending = serviceRow(service({ type: 'LoadBalancer' }), []);
    expect(pending.external).toBe('<pending>');
    const served = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }] } };
    expect(serviceRow(service({ type: 'LoadBalancer' }, served), []).external).toBe('192.0.2.1,2001:db8::1');
    expect(serviceRow(service({ clusterIPs: ['None'] }), []).type).toBe('Headless');
    const name = service({ type: 'ExternalName', externalName: 'example.com', clusterIPs: [] });
    expect(serviceRow(name, [])).toMatchObject({ external: 'example.com', endpoints: undefined });
  });
});

describe('poolRows', () => {
  it('has a row for each family with addresses', () => {
    const status = { ipv4: { total: 254, used: 3 }, ipv6: { total: 0, used: 0 } };
    const pool = { metadata: { name: 'default' }, status };
    expect(poolRows(pool)).toEqual([{ name: 'default', family: 'IPv4', used: 3, total: 254 }]);
    expect(poolRows({ metadata: { name: 'new' } })).toEqual([]);
  });
});

describe('plain', () => {
  it('leaves nothing that a terminal would obey', () => {
    const hostile = fc.string({
      unit: fc.oneof(
        fc.constantFrom('\u001b[2J', '\u001b]0;owned\u0007', '\u009b31m', '\r', '\n', '\u202e', '\u2028'),
        fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 }),
      ),
    });
    fc.assert(
      fc.property(hostile, (text) => {
        const shown = plain(text);
        const obeyed = Array.from(shown).filter((character) => {
          const code = character.codePointAt(0) ?? 0;
          return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x202e || code === 0x2028;
        });
        expect(obeyed).toEqual([]);
      }),
    );
    expect(plain('\u001b[31mred\u001b[0m\nnext')).toBe('red?next');
    expect(plain('Grüße, 世界')).toBe('Grüße, 世界');
  });

  it('cuts at characters', () => {
    expect(fit('abcdef', 4)).toBe('abc…');
    expect(fit('ab', 4)).toBe('ab');
    expect(fit('😀😀😀', 2)).toBe('😀…');
    expect(fit('abc', 0)).toBe('');
  });
});

const event = eventSummary({
  metadata: { name: 'e', namespace: 'shop' },
  ...{
    involvedObject: { kind: 'Service', namespace: 'shop', name: 'web' },
    lastTimestamp: '2026-01-01T12:34:56Z',
    type: 'Warning',
    reason: 'NoFreeAddress',
    message: 'the pool is \u001b[31mfull',
  },
});

function view(services: number, events = 20): View {
  return {
    services: Array.from({ length: services }, (_, i) => ({
      ...serviceRow(service(), [slice('IPv4', [{ ready: i > 0 }])]),
      name: `web-${i}`,
    })),
    answers: [],
    pools: [{ name: 'default', family: 'IPv4', used: 1, total: 254 }],
    egress: [],
    events: Array.from({ length: events }, () => event),
    nodes: { ready: 3, total: 3 },
  };
}

describe('renderScreen', () => {
  it('fits any screen, whatever there is to show', () => {
    const arbitrary = fc.tuple(
      fc.nat(60),
      fc.nat(20),
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 150 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(arbitrary, ([services, events, rows, columns, colour]) => {
        const lines = renderScreen(view(services, events), ['title'], { rows, columns }, colour, ['try']);
        expect(lines.reduce((sum, line) => sum + rowsOf(line, columns), 0)).toBeLessThanOrEqual(rows);
        const others = lines.map(stripVTControlCharacters).filter((line) => line !== 'title');
        for (const line of others) expect(line.length).toBeLessThanOrEqual(Math.max(columns, 3));
      }),
    );
  });

  it('cuts nothing that is to be copied: it takes several rows', () => {
    const copied = `export KUBECONFIG=/home/${'a'.repeat(100)}`;
    const hint = `  kubectl ${'b'.repeat(100)}`;
    const problem = `no answer: ${'c'.repeat(100)}`;
    const size = { rows: 30, columns: 80 };
    const lines = renderScreen({ ...view(50), problem }, ['title', copied], size, false, [hint, hint]);
    expect(lines).toEqual(expect.arrayContaining([copied, problem, hint]));
    expect(lines.reduce((rows, line) => rows + rowsOf(line, 80), 0)).toBeLessThanOrEqual(30);
    expect(rowsOf('\u001b[1mabc\u001b[22m', 3)).toBe(1);
  });

  it('leaves out whole columns where the screen is narrow, the least important one first', () => {
    const headings = [80, 60, 50, 40, 30, 20].map((columns) =>
      renderScreen(view(1), ['title'], { rows: 24, columns }, false).find((line) => line.startsWith('NAME')),
    );
    expect(headings).toEqual([
      'NAMESPACE  NAME   TYPE       CLUSTER-IP  EXTERNAL-IP  PORT(S)  READY',
      'NAMESPACE  NAME   CLUSTER-IP  EXTERNAL-IP  PORT(S)  READY',
      'NAMESPACE  NAME   CLUSTER-IP  EXTERNAL-IP  READY',
      'NAMESPACE  NAME   EXTERNAL-IP  READY',
      'NAME   EXTERNAL-IP  READY',
      'NAME   READY',
    ]);
  });

  it('keeps the commands to try at the end, as many as leave room for Services', () => {
    const hints = ['kubectl get services', 'kubectl get pods'];
    const shown = (rows: number) =>
      renderScreen(view(50, 5), ['title'], { rows, columns: 100 }, false, hints).slice(-3);
    expect(shown(24).slice(1)).toEqual(hints);
    expect(shown(19).slice(1)).toEqual(['', hints[0]]);
    expect(shown(12).join('\n')).not.toContain('kubectl');
  });

  it('says why nothing is heard of the server, where else it counts', () => {
    const lines = renderScreen(
      { ...view(3), problem: 'no answer' },
      ['title'],
      { rows: 24, columns: 100 },
      false,
    );
    expect(lines[1]).toBe('no answer');
    expect(lines.join('\n')).not.toContain('3 Services');
  });

  it('shows a summary, the pools, the Services and the last Events', () => {
    const lines = renderScreen(view(3, 1), ['title'], { rows: 24, columns: 100 }, false);
    expect(lines).toEqual([
      'title',
      '3 Services, 1 without ready endpoints, 3 of 3 nodes ready',
      'pool default  IPv4  [#...................]  1 of 254 used',
      '',
      'NAMESPACE  NAME   TYPE       CLUSTER-IP  EXTERNAL-IP  PORT(S)  READY',
      'shop       web-0  ClusterIP  10.96.0.7   <none>       80/TCP   0/1',
      'shop       web-1  ClusterIP  10.96.0.7   <none>       80/TCP   1/1',
      'shop       web-2  ClusterIP  10.96.0.7   <none>       80/TCP   1/1',
      '',
      '12:34:56  shop  service/web  NoFreeAddress  the pool is full',
    ]);
  });

  it('says which Pod of a Service answered last, and how many of its answers were from there', () => {
    const counts = new Map([
      ['shop/web-a', 4],
      ['shop/web-b', 3],
    ]);
    const answers = [lastAnswer('shop/web', counts)];
    const lines = renderScreen({ ...view(1), answers }, ['title'], { rows: 24, columns: 100 }, false);
    expect(lines[3]).toBe('last answer of shop/web: web-b, 3 of 7');
  });

  it('says which node has each egress address', () => {
    const object = {
      ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name: 'shop' } },
      spec: { egressIPs: ['192.0.2.9', '2001:DB8::9'], namespaceSelector: {} },
      status: { items: [{ egressIP: '2001:db8::9', node: 'node-2' }] },
    };
    const egress = egressRows(object);
    const lines = renderScreen({ ...view(1), egress }, ['title'], { rows: 24, columns: 100 }, false);
    expect(lines.slice(3, 5)).toEqual([
      'egress 192.0.2.9  shop  on no node',
      'egress 2001:db8::9  shop  on node-2',
    ]);
    // No more than a part of the screen.
    const many = Array.from({ length: 30 }, (_, n) => ({
      address: `192.0.2.${n}`,
      egressIP: 'a',
      node: 'b',
    }));
    const shown = renderScreen({ ...view(9), egress: many }, ['title'], { rows: 12, columns: 100 }, false);
    expect(shown.filter((line) => line.startsWith('egress'))).toHaveLength(4);
    expect(shown).toHaveLength(12);
  });

  it('says how many Services there was no room for', () => {
    const lines = renderScreen(view(50), ['title'], { rows: 24, columns: 100 }, false);
    const shown = lines.filter((line) => line.startsWith('shop ')).length;
    expect(lines).toContain(`… and ${50 - shown} more`);
  });

  it('has one line for a Service where there is no terminal', () => {
    const [row] = view(1).services;
    if (row === undefined) throw new Error('the view has no Service');
    expect(serviceText(row)).toBe('shop/web-0  ClusterIP  10.96.0.7  <none>  80/TCP  0/1 ready');
  });
});
