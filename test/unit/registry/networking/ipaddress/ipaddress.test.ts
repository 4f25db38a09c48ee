import { beforeEach, describe, expect, it } from 'vitest';
import { addressLog, contextOf, create, definitionOf, update } from '../../decide.ts';

const addresses = definitionOf('IPAddress');
const parentRef = { resource: 'services', namespace: 'ns', name: 'x' };

function at(name: string, spec: object = { parentRef }): object {
  return { metadata: { name }, spec };
}

beforeEach(() => {
  addressLog.length = 0;
});

describe('an IPAddress', () => {
  it('takes its address when it is stored and frees it when it goes', () => {
    const { stored } = create(addresses, at('10.96.0.9'));
    expect(addressLog).toEqual(['hold 10.96.0.9']);
    addresses.strategy.beginDelete?.(stored, contextOf()).commit();
    expect(addressLog).toEqual(['hold 10.96.0.9', 'release 10.96.0.9']);
  });

  it('takes nothing when it is refused', () => {
    expect(create(addresses, at('fd00:0::1')).errors).toEqual([
      'metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")',
    ]);
    expect(addressLog).toEqual([]);
  });

  it('names its parent whole', () => {
    expect(create(addresses, at('10.96.0.9', {})).errors).toEqual(['spec.parentRef: Required value']);
    const bad = { group: 'Bad_Group', resource: 'a/b', namespace: '..' };
    const fields = create(addresses, at('10.96.0.9', { parentRef: bad })).errors.map(
      (text) => text.split(':')[0],
    );
    expect(fields).toEqual(
      ['group', 'resource', 'name', 'namespace'].map((member) => `spec.parentRef.${member}`),
    );
  });

  it('keeps its parent', () => {
    const old = create(addresses, at('10.96.0.9')).stored;
    expect(update(addresses, old, { spec: { parentRef: { ...parentRef, name: 'y' } } }).errors).toEqual([
      'spec.parentRef: Invalid value: null: field is immutable',
    ]);
  });
});
