import { describe, expect, it } from 'vitest';
import { create, definitionOf } from '../../decide.ts';

const pod = definitionOf('Pod');
const at = 'spec.containers[0].resources';

function errorsOf(resources: object): string[] {
  const spec = { containers: [{ name: 'c', image: 'example.com/c', resources }] };
  return create(pod, { spec }).errors;
}

describe('what a container asks for', () => {
  it.each([
    [{ limits: { cpu: '1', 'hugepages-2Mi': '4Mi' } }, []],
    [{ limits: { 'hugepages-2Mi': '4Mi' } }, [`${at}: Forbidden: HugePages require cpu or memory`]],
    [
      { requests: { 'example.com/gpu': '1' } },
      [`${at}.limits: Required value: Limit must be set for non overcommitable resources`],
    ],
    [
      { requests: { cpu: '2', 'example.com/gpu': '1' }, limits: { cpu: '1', 'example.com/gpu': '2' } },
      [
        `${at}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
        `${at}.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2`,
      ],
    ],
    [{ requests: { 'kubernetes.io/batteries': '1' } }, []],
  ])('in %j has the errors %j', (resources, errors) => {
    expect(errorsOf(resources)).toEqual(errors);
  });

  it('comes in whole pages, and in limits and the requests that follow from them', () => {
    expect(errorsOf({ limits: { cpu: '1', 'hugepages-2Mi': '3Mi' } })).toEqual(
      ['limits', 'requests'].map(
        (member) =>
          `${at}.${member}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
      ),
    );
    expect(errorsOf({ limits: { cpu: '1', 'hugepages-big': '0' } })).toHaveLength(2);
  });

  it.each([
    ['pods', ['must be a standard resource for containers']],
    [
      'network',
      ['must be a standard resource type or fully qualified', 'must be a standard resource for containers'],
    ],
    ['requests.example.com/gpu', ["doesn't follow extended resource name standard"]],
  ])('has a name that containers know, which %s is not', (name, details) => {
    expect(errorsOf({ limits: { [name]: '1' } })).toEqual(
      ['limits', 'requests'].flatMap((member) =>
        details.map((detail) => `${at}.${member}[${name}]: Invalid value: "${name}": ${detail}`),
      ),
    );
  });
});
