import { describe, expect, test } from 'vitest';
import { Masker } from '../../conformance/mask.ts';
import { serviceRangesOf } from '../../conformance/replay.ts';
import { readTranscript, transcriptFiles, type Case } from '../../conformance/transcript.ts';

const ownNamespace = 'cf1xmaskertest';

function maskerFor(test: Pick<Case, 'cluster' | 'generated'>, named = ''): Masker {
  return new Masker({
    namespace: ownNamespace,
    named,
    generated: test.generated,
    serviceRanges: serviceRangesOf[test.cluster],
  });
}

/** Puts values where tokens are: one of each kind per case, as a server could have picked them. */
function unmask(value: unknown, test: Case, ip4: string, ip6: string): unknown {
  const text = (masked: string): string =>
    masked
      .replaceAll('${ns}', ownNamespace)
      .replaceAll('<uid>', '0e3f6c1a-4b52-4c7e-9d67-0f2f5d1c9a10')
      .replaceAll('<rv>', '4711')
      .replaceAll('<time>', '2026-11-21T00:00:00Z')
      .replaceAll('<ip4>', ip4)
      .replaceAll('<ip6>', ip6)
      .replaceAll('<nodePort>', '31999')
      .replaceAll('<continue>', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ')
      .replaceAll('<suffix>', 'bc2fg');
  if (typeof value === 'string')
    return value === '<nodePort>' ? 31999 : value === '<count>' ? 3 : text(value);
  if (Array.isArray(value)) return value.map((item) => unmask(item, test, ip4, ip6));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [text(key), unmask(item, test, ip4, ip6)]),
  );
}

describe('Masker', () => {
  test.each(transcriptFiles())('puts every token of %s back', (file) => {
    for (const recorded of readTranscript(file)) {
      const [first = '', second = ''] = serviceRangesOf[recorded.cluster];
      const v4 = [first, second].find((range) => range.includes('.')) ?? '10.99.0.0/16';
      const v6 = [first, second].find((range) => range.includes(':')) ?? 'fd00:10:99::/112';
      const ip4 = v4.replace('0.0/16', '77.201');
      const ip6 = v6.replace('/112', 'a7c9');
      const masker = maskerFor(recorded, JSON.stringify(recorded.steps.map(({ request }) => request)));
      for (const { request, response } of recorded.steps) {
        for (const part of [response.body, response.events, response.warning]) {
          const raw = unmask(part, recorded, ip4, ip6);
          masker.learn(raw);
          // A picked body is flat, and holds no nodePort of its own.
          if (request.pick === undefined) expect(masker.mask(raw)).toEqual(part);
        }
      }
    }
  });

  test('leaves alone what a request named', () => {
    const named = '[{"post":"/x","body":{"spec":{"clusterIP":"10.96.1.35","ports":[{"nodePort":30007}]}}}]';
    const masker = maskerFor({ cluster: 'v4' }, named);
    const object = { spec: { clusterIP: '10.96.1.35', ports: [{ nodePort: 30007 }, { nodePort: 30008 }] } };
    masker.learn(object);
    expect(masker.mask(object)).toEqual({
      spec: { clusterIP: '10.96.1.35', ports: [{ nodePort: 30007 }, { nodePort: '<nodePort>' }] },
    });
    expect(masker.text('80:30007/TCP,81:30008/TCP')).toBe('80:30007/TCP,81:<nodePort>/TCP');
    // 10.96.1.3 is not named only because 10.96.1.35 is.
    expect(masker.text('10.96.1.3, 10.96.1.35')).toBe('<ip4>, 10.96.1.35');
  });

  test('masks addresses of the Service CIDRs in texts, but neither the CIDRs nor other addresses', () => {
    const masker = maskerFor({ cluster: 'dual46' });
    expect(masker.text('IP 10.97.3.4: taken, in 10.97.0.0/16; e.g. 10.9.8.7 or 2001:db8::ffff')).toBe(
      'IP <ip4>: taken, in 10.97.0.0/16; e.g. 10.9.8.7 or 2001:db8::ffff',
    );
    expect(masker.text('IP fd00:10:97::5: taken, in fd00:10:97::/112')).toBe(
      'IP <ip6>: taken, in fd00:10:97::/112',
    );
  });

  test('masks times, uids, revisions, counts and generated names', () => {
    const masker = maskerFor({ cluster: 'v4', generated: 'web-' });
    const metadata = {
      name: 'web-bc2fg',
      generateName: 'web-',
      namespace: ownNamespace,
      uid: '0e3f6c1a-4b52-4c7e-9d67-0f2f5d1c9a10',
      resourceVersion: '12',
      creationTimestamp: '2026-11-21T00:00:00Z',
      managedFields: [{ manager: 'x' }],
      selfLink: '/x',
    };
    expect(masker.mask({ metadata, eventTime: '2026-11-21T00:00:00.000001Z' })).toEqual({
      metadata: {
        name: 'web-<suffix>',
        generateName: 'web-',
        namespace: '${ns}',
        uid: '<uid>',
        resourceVersion: '<rv>',
        creationTimestamp: '<time>',
      },
      eventTime: '<time>',
    });
    expect(masker.mask({ resourceVersion: '0', continue: '', remainingItemCount: 7 })).toEqual({
      resourceVersion: '0',
      continue: '',
      remainingItemCount: '<count>',
    });
    const named = maskerFor({ cluster: 'v4' }, '"2024-01-01T00:00:00Z"');
    expect(
      named.mask({ lastTransitionTime: '2024-01-01T00:00:00Z', message: 'at 2024-01-01T00:00:00Z' }),
    ).toEqual({
      lastTransitionTime: '<time>',
      message: 'at 2024-01-01T00:00:00Z',
    });
    expect(masker.text('Service "web-bc2fg" in the layout 2006-01-02T15:04:05Z')).toBe(
      'Service "web-<suffix>" in the layout 2006-01-02T15:04:05Z',
    );
  });
});
