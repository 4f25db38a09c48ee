import { describe, expect, it } from 'vitest';
import { create, definitionOf, memberOf, update } from '../../decide.ts';

const secrets = definitionOf('Secret');
const configMaps = definitionOf('ConfigMap');
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a Secret', () => {
  it('is Opaque and keeps stringData as data', () => {
    const { object } = create(secrets, { data: { a: base64('x'), b: base64('y') }, stringData: { b: 'z' } });
    expect(object).toMatchObject({ type: 'Opaque', data: { a: base64('x'), b: base64('z') } });
    expect(object).not.toHaveProperty('stringData');
  });

  it('keeps odd keys as keys', () => {
    const stringData: unknown = JSON.parse('{"__proto__":"x","constructor":"y"}');
    const { stored } = create(secrets, { stringData });
    expect(Object.keys(memberOf(stored, 'data')).sort()).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf({})).not.toHaveProperty('x');
  });

  it.each([
    ['kubernetes.io/tls', {}, ['data[tls.crt]: Required value', 'data[tls.key]: Required value']],
    ['kubernetes.io/basic-auth', {}, ['data[username]: Required value', 'data[password]: Required value']],
    ['kubernetes.io/basic-auth', { username: '' }, []],
    ['kubernetes.io/ssh-auth', {}, ['data[ssh-privatekey]: Required value']],
    ['kubernetes.io/dockercfg', {}, ['data[.dockercfg]: Required value']],
    [
      'kubernetes.io/dockerconfigjson',
      { '.dockerconfigjson': base64('[]') },
      [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go value of type map[string]interface {}',
      ],
    ],
    [
      'kubernetes.io/service-account-token',
      {},
      ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
    ],
    [
      'example.com/own',
      { 'a b': '' },
      [expect.stringMatching(/^data\[a b\]: Invalid value: "a b": a valid config key/)],
    ],
  ])('of type %s with %j has the errors %j', (type, data, errors) => {
    expect(create(secrets, { type, data }).errors).toEqual(errors);
  });

  it('keeps its type, and its data once it is immutable', () => {
    const old = create(secrets, { data: { a: base64('x') }, immutable: true }).stored;
    const { errors } = update(secrets, old, { type: 'x/y', data: { a: base64('y') } });
    expect(errors).toEqual([
      'type: Invalid value: "x/y": field is immutable',
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
    ]);
  });
});

describe('a ConfigMap', () => {
  it('holds a megabyte, under keys that are no paths', () => {
    const { errors } = create(configMaps, {
      data: { '..': '', big: 'x'.repeat(2 ** 20) },
      binaryData: { big: 'YQ==' },
    });
    expect(errors).toEqual([
      expect.stringMatching(/^data\[\.\.\]: Invalid value: "\.\.": must not be '\.\.'/),
      'data[big]: Invalid value: "big": duplicate of key present in binaryData',
      ': Too long: may not be more than 1048576 bytes',
    ]);
  });

  it('does not change once it is immutable, except in its metadata', () => {
    const old = create(configMaps, { data: { a: '1' }, immutable: true }).stored;
    expect(update(configMaps, old, { data: { a: '2' }, immutable: true }).errors).toEqual([
      'data: Forbidden: field is immutable when `immutable` is set',
    ]);
    expect(update(configMaps, old, { data: { a: '1' }, immutable: true }).errors).toEqual([]);
  });
});
