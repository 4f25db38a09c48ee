import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('PriorityLevelConfiguration');
const queuing = (numbers: object) => ({
  type: 'Limited',
  limited: { limitResponse: { type: 'Queue', queuing: numbers } },
});
const limited = (members: object) => ({
  type: 'Limited',
  limited: { limitResponse: { type: 'Reject' }, ...members },
});

describe('a PriorityLevelConfiguration', () => {
  test('has numbers where it names none', () => {
    const { object, errors } = create(kind, { spec: queuing({}) });
    expect(errors).toEqual([]);
    const numbers = { queues: 64, handSize: 8, queueLengthLimit: 50 };
    expect(object).toMatchObject({
      metadata: { generation: 1 },
      spec: {
        limited: {
          nominalConcurrencyShares: 30,
          lendablePercent: 0,
          limitResponse: { type: 'Queue', queuing: numbers },
        },
      },
    });
  });

  test.each([
    [{ type: 'Limited' }, ['spec.limited: Required value']],
    [{ ...limited({}), exempt: {} }, ['spec.exempt: Forbidden']],
    [{ type: 'Bogus' }, ['spec.type: Unsupported value: "Bogus": supported values: "Exempt", "Limited"']],
    [
      { type: 'Exempt' },
      ["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"],
    ],
    [
      limited({ nominalConcurrencyShares: -1, lendablePercent: 101, borrowingLimitPercent: -1 }),
      [
        'spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer',
        'spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive',
        'spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer',
      ],
    ],
    [limited({ nominalConcurrencyShares: 0 }), []],
    [
      queuing({ queues: 512, handSize: 8 }),
      [
        'spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize 512 and handSize 8 should not be greater than 60',
      ],
    ],
    [
      queuing({ queues: 7, handSize: 8 }),
      [
        'spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (7)',
      ],
    ],
    [queuing({ queues: 10_000_000, handSize: 2 }), []],
    [
      queuing({ queues: 10_000_001, handSize: 1, queueLengthLimit: -1 }),
      [
        'spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive',
        'spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000',
      ],
    ],
  ])('with %j has the errors %j', (spec, errors) => {
    expect(create(kind, { metadata: { name: 'a' }, spec }).errors).toEqual(errors);
  });

  test('that every cluster has keeps its spec, but for what the exempt one lends', () => {
    const free = { type: 'Exempt', exempt: { nominalConcurrencyShares: 10, lendablePercent: 10 } };
    const exempt = create(kind, { metadata: { name: 'exempt' }, spec: free });
    expect(exempt.errors).toEqual([]);
    const other = create(kind, { metadata: { name: 'catch-all' }, spec: limited({}) });
    expect(other.errors).toEqual([
      `spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value`,
    ]);
    const changed = update(kind, exempt.stored, { spec: { ...free, limited: {} } });
    expect(changed.errors.map((error) => error.replace(/\{.*\}/, '…'))).toEqual([
      'spec.limited: Forbidden',
      "spec: Invalid value: …: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
    ]);
  });
});
