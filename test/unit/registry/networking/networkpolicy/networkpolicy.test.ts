import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const policies = definitionOf('NetworkPolicy');

function errorsOf(spec: object): string[] {
  return create(policies, { spec: { podSelector: {}, ...spec } }).errors;
}

describe('a NetworkPolicy', () => {
  it.each([
    [{}, ['Ingress']],
    [{ egress: [{}] }, ['Ingress', 'Egress']],
    [{ policyTypes: ['Egress'] }, ['Egress']],
  ])('%j has the types %j', (spec, policyTypes) => {
    expect(create(policies, { spec }).object).toMatchObject({
      metadata: { generation: 1 },
      spec: { policyTypes },
    });
  });

  it.each([
    [
      { ingress: [{ ports: [{ port: 0 }, { port: 'Bad_Port' }, { port: 80, protocol: 'ICMP' }] }] },
      [
        'spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.ingress[0].ports[1].port: Invalid value: "Bad_Port": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'spec.ingress[0].ports[2].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"',
      ],
    ],
    [
      { egress: [{ ports: [{ port: 80, endPort: 79 }, { port: 'http', endPort: 90 }, { endPort: 90 }] }] },
      [
        'spec.egress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`',
        'spec.egress[0].ports[1].endPort: Invalid value: 90: may not be specified when `port` is non-numeric',
        'spec.egress[0].ports[2].endPort: Invalid value: 90: may not be specified when `port` is not specified',
      ],
    ],
    [{ ingress: [{ from: [{}] }] }, ['spec.ingress[0].from[0]: Required value: must specify a peer']],
    [
      { ingress: [{ from: [{ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }] }] },
      ['spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer'],
    ],
    [
      {
        egress: [
          {
            to: [
              {
                ipBlock: {
                  cidr: '10.0.0.0/8',
                  except: ['11.0.0.0/16', '10.0.0.0/8', 'fd00::/16', '10.1.0.0/16'],
                },
              },
            ],
          },
        ],
      },
      [0, 1, 2].map(
        (i) =>
          `spec.egress[0].to[0].ipBlock.except[${i}]: Invalid value: ${JSON.stringify(['11.0.0.0/16', '10.0.0.0/8', 'fd00::/16'][i])}: must be a strict subset of \`cidr\``,
      ),
    ],
    [
      { policyTypes: ['Ingress', 'Egress', 'Ingress'] },
      [
        'spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes',
      ],
    ],
    [
      {
        podSelector: {
          matchExpressions: [
            { key: 'k', operator: 'In' },
            { key: 'k', operator: 'Like' },
          ],
        },
      },
      [
        "spec.podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        'spec.podSelector.matchExpressions[1].operator: Invalid value: "Like": not a valid selector operator',
      ],
    ],
  ])('%j is refused', (spec, errors) => {
    expect(errorsOf(spec)).toEqual(errors);
  });

  it('counts changes of its spec', () => {
    const old = create(policies, { spec: { podSelector: {} } }).stored;
    expect(update(policies, old, { spec: { podSelector: {} } }).stored.metadata.generation).toBe(1);
    expect(
      update(policies, old, { spec: { podSelector: {}, egress: [{}] } }).stored.metadata.generation,
    ).toBe(2);
  });
});
