import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { StatusError } from '../../../../src/objects/status.ts';
import { tableConverter } from '../../../../src/apiserver/tables/converters.ts';
import { customTableConverter } from '../../../../src/apiserver/tables/custom-columns.ts';
import { parseJsonPath } from '../../../../src/apiserver/tables/custom-columns.ts';
import { includeObjectOf, toTable } from '../../../../src/apiserver/tables/table.ts';

const now = Date.parse('2026-01-01T01:00:00Z');
const configMap: KubeObject = {
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' },
};

describe('toTable', () => {
  const converter = tableConverter('', 'ConfigMap');
  const options = {
    nowMs: now,
    metadata: { resourceVersion: '5' },
    withColumns: true,
    version: 'v1',
    inOrder: ({ metadata }: KubeObject) => ({ metadata, kind: 'ConfigMap' }),
  } as const;

  test('carries the metadata of the objects unless asked otherwise', () => {
    const table = toTable(converter, [configMap], { ...options, includeObject: 'Metadata' });
    expect(table).toEqual({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '5' },
      columnDefinitions: converter.columns,
      rows: [
        {
          cells: ['a', 0, '60m'],
          object: {
            kind: 'PartialObjectMetadata',
            apiVersion: 'meta.k8s.io/v1',
            metadata: configMap.metadata,
          },
        },
      ],
    });
    expect(toTable(converter, [configMap], { ...options, includeObject: 'None' }).rows[0]?.object).toBeNull();
    expect(toTable(converter, [configMap], { ...options, includeObject: 'Object' }).rows[0]?.object).toEqual({
      metadata: configMap.metadata,
      kind: 'ConfigMap',
    });
  });

  test('is of the version that was asked for, and so is the metadata in it', () => {
    const table = toTable(converter, [configMap], {
      ...options,
      includeObject: 'Metadata',
      version: 'v1beta1',
    });
    expect([table.apiVersion, table.rows[0]?.object]).toEqual([
      'meta.k8s.io/v1beta1',
      { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1beta1', metadata: configMap.metadata },
    ]);
  });

  test('has no rows for no objects, and no columns when they were sent before', () => {
    const table = toTable(converter, [], { ...options, includeObject: 'Metadata', withColumns: false });
    expect([table.rows, table.columnDefinitions]).toEqual([[], null]);
  });

  test('refuses another includeObject', () => {
    expect(includeObjectOf(new URLSearchParams())).toBe('Metadata');
    expect(includeObjectOf(new URLSearchParams('includeObject=None'))).toBe('None');
    expect(() => includeObjectOf(new URLSearchParams('includeObject=All'))).toThrow(
      new StatusError(
        400,
        'BadRequest',
        "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty",
      ),
    );
  });
});

describe('custom columns', () => {
  const columns = [
    { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
    { name: 'Color', type: 'string', description: 'the color', priority: 1, jsonPath: '.spec.color' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Since', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'On', type: 'boolean', jsonPath: '.spec.on' },
  ];

  test('are described by their path where they have no description', () => {
    expect(customTableConverter(columns).columns.slice(1, 3)).toEqual([
      {
        name: 'Size',
        type: 'integer',
        format: '',
        description: 'Custom resource definition column (in JSONPath format): .spec.size',
        priority: 0,
      },
      { name: 'Color', type: 'string', format: '', description: 'the color', priority: 1 },
    ]);
  });

  test('show values of their type, null for others', () => {
    const { cells } = customTableConverter(columns);
    const widget = {
      ...configMap,
      spec: { size: 3.7, on: true },
      status: {
        conditions: [
          { type: 'X', status: 'False' },
          { type: 'Ready', status: 'True' },
        ],
      },
    };
    expect(cells(widget, now)).toEqual(['a', 3, null, 'True', '60m', true]);
    expect(
      cells(
        {
          ...configMap,
          metadata: { name: 'b' },
          spec: { size: '3', on: 'x', color: { a: 1 } },
        } as KubeObject,
        now,
      ),
    ).toEqual(['b', null, '{"a":1}', null, null, null]);
  });

  test.each<[string, unknown, unknown]>([
    ['string', null, '<no value>'],
    ['string', { a: '<é>' }, '{"a":"\\u003cé\\u003e"}'],
    ['integer', null, null],
    ['date', '', '<unknown>'],
    ['date', '2026-01-01', '<invalid>'],
    ['date', '12', '<invalid>'],
    ['date', '2026-01-01T01:30:00+01:00', '30m'],
    ['date', 5, null],
  ])('of type %s show %j as client-go prints it', (type, value, shown) => {
    const { cells } = customTableConverter([{ name: 'X', type, jsonPath: '.spec.x' }]);
    expect(cells({ ...configMap, spec: { x: value } } as KubeObject, now)).toEqual(['a', shown]);
  });

  test('are Name and Age where there are none', () => {
    const { columns: shown, cells } = customTableConverter([]);
    expect(shown.map(({ name, type }) => [name, type])).toEqual([
      ['Name', 'string'],
      ['Age', 'date'],
    ]);
    expect(cells(configMap, now)).toEqual(['a', '60m']);
  });
});

describe('JSONPath', () => {
  const value = {
    a: {
      'b.c': [1, 2, 3],
      d: [
        { n: 'x', v: 1 },
        { n: 'y', v: 2 },
      ],
    },
    e: '',
  };
  test.each([
    ['.a.d[0].v', [1]],
    ['$.a.d[-1].v', [2]],
    ['.a.b\\.c[1]', [2]],
    [".a['b\\.c'][*]", [1, 2, 3]],
    [".a['b.c'][*]", []],
    ['.a.d[*].n', ['x', 'y']],
    ['.a.d[?(@.n=="y")].v', [2]],
    [".a.d[?(@.n != 'y')].v", [1]],
    ['.a.d[0:1].n', ['x']],
    ['.a.d[-1:].n', ['y']],
    ['.a.d[::2].n', ['x']],
    ['.a.d[0,1].v', [1, 2]],
    [".a['d','e'][0].n", ['x']],
    ['..n', ['x', 'y']],
    ['.a..v', [1, 2]],
    ['.a.d[?(@.v>1)].n', ['y']],
    ['.a.d[?(@.n<="x")].v', [1]],
    ['.a.d[?(@.n)].v', [1, 2]],
    ['.a.d[].n', ['x']],
    // what does not fit finds nothing
    ['.a.d[5]', []],
    ['.a[0]', []],
    ['.e[?(@.n)]', []],
    ['.a.d[?(@.v>"x")]', []],
    ['.a.d[?(@=="x")]', []],
    ['.a.d[1:0]', []],
    ['.a.d[?(@.v==2)].n', ['y']],
    ['.missing.x', []],
    ['.a.d.n', []],
    ['.constructor', []],
    ['.__proto__', []],
    ['', [value]],
  ])('%s', (path, expected) => {
    expect(parseJsonPath(path)?.(value)).toEqual(expected);
  });

  test.each([
    '.a[',
    '.a[x]',
    '.a["x"]',
    '.a[1:2:3:4]',
    '.....a',
    '.a{b',
    '.a[?(@.x==1]',
    `.${'a'.repeat(2000)}`,
  ])('%s is not understood', (path) => expect(parseJsonPath(path)).toBeUndefined());

  test('nothing makes it throw or hang', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('.', 'a', '[', ']', '?(', ')', '@', '==', '"', '*', '\\', '1', '-'),
        }),
        fc.jsonValue(),
        (path, json) => {
          expect(Array.isArray(parseJsonPath(path)?.(json) ?? [])).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
