import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const ranges = definitionOf('LimitRange');

function errorsOf(...limits: object[]): string[] {
  return create(ranges, { spec: { limits } }).errors;
}

describe('the limits of a LimitRange', () => {
  it('may be of other types than the standard ones, with a domain', () => {
    expect(errorsOf({ type: 'example.com/foo', max: { storage: '2' }, default: { storage: '1' } })).toEqual(
      [],
    );
    expect(errorsOf({ type: 'foo', max: { storage: '2' } })).toEqual([
      'spec.limits[0].type: Invalid value: "foo": must be a standard limit type or fully qualified',
    ]);
  });

  it('name resources that containers have, in every member', () => {
    const type = 'example.com/foo';
    expect(errorsOf({ type, min: { network: '1' }, maxLimitRequestRatio: { disk: '1' } })).toEqual([
      'spec.limits[0].min[network]: Invalid value: "network": must be a standard resource type or fully qualified',
      'spec.limits[0].maxLimitRequestRatio[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
    ]);
    expect(errorsOf({ type: 'Pod', max: { storage: '1' } })).toEqual([
      'spec.limits[0].max[storage]: Invalid value: "storage": must be a standard resource for containers',
    ]);
    expect(errorsOf({ type: 'Pod', max: { 'requests.example.com/a': '1' } })).toEqual([
      'spec.limits[0].max[requests.example.com/a]: Invalid value: "requests.example.com/a": doesn\'t follow extended resource name standard',
    ]);
  });

  it('of claims bound their storage', () => {
    const type = 'PersistentVolumeClaim';
    expect(errorsOf({ type, max: { 'example.com/a': '1' } })).toEqual([
      'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
    ]);
    expect(errorsOf({ type, min: { storage: '5Gi' } })).toEqual([]);
  });

  it('show the bound where a default is beyond it', () => {
    const type = 'example.com/foo';
    expect(errorsOf({ type, min: { cpu: '1' }, default: { cpu: '500m' } })).toEqual([
      'spec.limits[0].default[cpu]: Invalid value: "1": min value 1 is greater than default value 500m',
    ]);
    expect(errorsOf({ type, max: { cpu: '1' }, default: { cpu: '2' } })).toEqual([
      'spec.limits[0].default[cpu]: Invalid value: "1": default value 2 is greater than max value 1',
    ]);
  });

  it.each([
    [{ maxLimitRequestRatio: { cpu: '800m' } }, 'ratio 800m is less than 1'],
    [
      { max: { memory: '2Gi' }, min: { memory: '512Mi' }, maxLimitRequestRatio: { memory: '10' } },
      'ratio 10 is greater than max/min = 4.000000',
    ],
    [
      { max: { cpu: '1500m' }, min: { cpu: '1' }, maxLimitRequestRatio: { cpu: '1501m' } },
      'ratio 1501m is greater than max/min = 1.500000',
    ],
    [{ max: { cpu: '1500m' }, min: { cpu: '1' }, maxLimitRequestRatio: { cpu: '1500m' } }, ''],
  ])('leave room for the ratio of limits to requests: %j', (bounds, detail) => {
    const errors = errorsOf({ type: 'Pod', ...bounds });
    expect(errors.map((error) => error.split(': ').slice(3).join(': '))).toEqual(
      detail === '' ? [] : [detail],
    );
  });

  it('of a resource that is not shared out twice have one default for limit and request', () => {
    const item = { type: 'example.com/foo', default: { 'hugepages-2Mi': '4Mi', cpu: '2' } };
    expect(errorsOf({ ...item, defaultRequest: { 'hugepages-2Mi': '2Mi', cpu: '1' } })).toEqual([
      'spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: "2Mi": default value 4Mi must equal to defaultRequest value 2Mi in hugepages-2Mi',
    ]);
  });
});

describe('a LimitRange', () => {
  it('without a name gets one, unless its name is to be generated', () => {
    const { object } = create(ranges, { metadata: { name: '' }, spec: { limits: [] } });
    expect(object).toMatchObject({ metadata: { name: '88888888-8888-4888-a888-888888888888' } });
  });

  it('is checked in an update as in a create, and no more', () => {
    const old = create(ranges, { spec: { limits: [] } }).stored;
    const bad = {
      metadata: { name: 'a', labels: { '-': '' } },
      spec: { limits: [{ type: 'Pod', max: { x: '1' } }] },
    };
    const paths = update(ranges, old, bad).errors.map((error) => error.split(': ')[0]);
    expect(paths).toEqual(['metadata.labels', 'spec.limits[0].max[x]', 'spec.limits[0].max[x]']);
  });
});
