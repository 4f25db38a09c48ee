import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { billOfMaterials } from '../../../hack/sbom.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';

const lock = {
  packages: {
    '': { name: 'app', version: '1.0.0', license: 'Apache-2.0', dependencies: { '@s/a': '^1', b: '^2' } },
    'node_modules/@s/a': {
      version: '1.2.3',
      resolved: 'https://registry.example/a.tgz',
      integrity: 'sha512-AAEC',
      license: 'MIT',
      dependencies: { b: '^1' },
    },
    'node_modules/@s/a/node_modules/b': { version: '1.0.0', license: '(MIT OR GPL-2.0)' },
    'node_modules/b': { version: '2.0.0', license: 'ISC' },
    'node_modules/tool': { version: '9.0.0', dev: true },
  },
};

describe('billOfMaterials', () => {
  test('names every production dependency with its licence and hash', () => {
    const components = listAt(billOfMaterials(lock, false), 'components');
    expect(components.map((component) => textAt(component, 'purl'))).toEqual([
      'pkg:npm/%40s/a@1.2.3',
      'pkg:npm/b@1.0.0',
      'pkg:npm/b@2.0.0',
    ]);
    expect(components[0]).toMatchObject({
      name: '@s/a',
      licenses: [{ license: { id: 'MIT' } }],
      hashes: [{ alg: 'SHA-512', content: '000102' }],
      externalReferences: [{ type: 'distribution', url: 'https://registry.example/a.tgz' }],
    });
    expect(components[1]).toMatchObject({ licenses: [{ expression: '(MIT OR GPL-2.0)' }] });
    expect(components[1]).not.toHaveProperty('externalReferences');
  });

  test('says who needs whom, in the version that Node finds', () => {
    expect(listAt(billOfMaterials(lock, false), 'dependencies').slice(0, 2)).toEqual([
      { ref: 'pkg:npm/app@1.0.0', dependsOn: ['pkg:npm/%40s/a@1.2.3', 'pkg:npm/b@2.0.0'] },
      { ref: 'pkg:npm/%40s/a@1.2.3', dependsOn: ['pkg:npm/b@1.0.0'] },
    ]);
  });

  test('covers the dependencies of package.json', () => {
    const real: unknown = JSON.parse(readFileSync('package-lock.json', 'utf8'));
    const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
    const names = listAt(billOfMaterials(real, false), 'components').map((entry) => textAt(entry, 'name'));
    expect(names).toEqual(expect.arrayContaining(Object.keys(recordAt(manifest, 'dependencies'))));
    expect(names).not.toContain('vitest');
    // Its code is in the page.
    expect(names).toContain('preact');
  });

  test('of the real lock has a hash and a licence for each, and names none twice', () => {
    const bill = billOfMaterials(JSON.parse(readFileSync('package-lock.json', 'utf8')), true);
    const components = listAt(bill, 'components');
    const bare = components.filter(
      (each) => listAt(each, 'hashes').length !== 1 || listAt(each, 'licenses').length !== 1,
    );
    expect(bare).toEqual([]);
    const references = components.map((each) => textAt(each, 'bom-ref'));
    expect(new Set(references).size).toBe(references.length);
    const needed = listAt(bill, 'dependencies').flatMap((each) => listAt(each, 'dependsOn'));
    expect(references).toEqual(expect.arrayContaining(needed));
  });
});

test('native parts of production dependencies are there for amd64 and arm64', () => {
  const lockFile: unknown = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const native = Object.entries(recordAt(lockFile, 'packages'))
    .filter(([, entry]) => recordAt(entry)['dev'] !== true)
    .map(([path]) => path)
    .filter((path) => /linux-x64(-gnu)?$/.test(path));
  expect(native.length).toBeGreaterThan(0);
  const all = Object.keys(recordAt(lockFile, 'packages'));
  for (const path of native) expect(all).toContain(path.replace('-x64', '-arm64'));
});
