import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('VolumeAttachment');
const spec = { attacher: 'example.com', nodeName: 'node-1', source: { persistentVolumeName: 'pv' } };

describe('a VolumeAttachment', () => {
  test('starts detached, whatever the client says', () => {
    const { object, errors } = create(kind, { spec, status: { attached: true } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ spec, status: { attached: false } });
  });

  test.each([
    [
      { attacher: '', nodeName: 'node-1', source: {} },
      [
        'spec.attacher: Required value',
        'spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName',
        'spec.attacher: Required value',
      ],
    ],
    [
      { ...spec, source: { persistentVolumeName: 'pv', inlineVolumeSpec: {} } },
      ['spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
    ],
    [
      { ...spec, attacher: `${'a'.repeat(60)}.com` },
      ['spec.attacher: Too long: may not be more than 63 bytes'],
    ],
  ])('with %j is refused', (given, errors) => {
    const told = create(kind, { spec: given }).errors.filter((error) => !error.includes('RFC 1123'));
    expect(told).toEqual(errors);
  });

  test('keeps its spec', () => {
    const { stored } = create(kind, { spec });
    expect(update(kind, stored, { spec: { ...spec, nodeName: 'node-2' } }).errors).toEqual([
      'spec: Invalid value: null: field is immutable',
    ]);
  });

  test('gets its status from /status', () => {
    const { stored } = create(kind, { spec });
    const changed = update(kind, stored, { spec: {}, status: { attached: true } }, 'status');
    expect(changed.errors).toEqual([]);
    expect(changed.object).toMatchObject({ spec, status: { attached: true } });
    const failed = { attached: false, attachError: { message: 'x'.repeat(1025), errorCode: -1 } };
    expect(update(kind, stored, { status: failed }, 'status').errors).toEqual([
      'status.attachError.message: Too long: may not be more than 1024 bytes',
      'status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive',
    ]);
  });
});
