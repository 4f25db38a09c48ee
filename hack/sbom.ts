/**
 * Prints what the package is made of as CycloneDX 1.6 JSON, from package-lock.json: the production dependencies and
 * what is in the page, their versions, licences, hashes and who needs whom. `node hack/sbom.ts --all` adds those of development.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isRecord, type JsonRecord } from '../src/objects/json.ts';
import { recordAt, textAt } from '../src/objects/json.ts';

const modules = 'node_modules/';
/** Packages of development whose code is in what hack/build-page.ts makes. */
const inPage = ['preact'];

/** The bill of materials of a package-lock.json of version 2 or 3. */
export function billOfMaterials(lock: unknown, includeDevelopment: boolean): JsonRecord {
  const packages = recordAt(lock, 'packages');
  const root = recordAt(packages, '');
  const chosen = Object.entries(packages).filter(
    ([path, entry]) =>
      path !== '' &&
      isRecord(entry) &&
      (includeDevelopment || entry['dev'] !== true || inPage.includes(nameOf(path))),
  );
  const references = new Map(
    chosen.map(([path, entry]) => [path, purl(nameOf(path), textAt(entry, 'version'))]),
  );
  const self = purl(textAt(root, 'name'), textAt(root, 'version'));
  const dependencies = [['', root] as const, ...chosen].map(([path, entry]) => ({
    ref: references.get(path) ?? self,
    dependsOn: needsOf(entry)
      .flatMap((name) => references.get(resolve(path, name, references)) ?? [])
      .sort(),
  }));
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': self,
        name: textAt(root, 'name'),
        version: textAt(root, 'version'),
        purl: self,
        licenses: licensesOf(root),
      },
    },
    components: chosen.map(([path, entry]) => ({
      type: 'library',
      'bom-ref': references.get(path),
      name: nameOf(path),
      version: textAt(entry, 'version'),
      purl: references.get(path),
      scope: isRecord(entry) && entry['optional'] === true ? 'optional' : 'required',
      licenses: licensesOf(entry),
      hashes: hashesOf(textAt(entry, 'integrity')),
      ...distributionOf(textAt(entry, 'resolved')),
    })),
    dependencies,
  };
}

/** Where Node finds a package that another one needs: beside it, or above. */
function resolve(from: string, name: string, known: ReadonlyMap<string, string>): string {
  let folder = from;
  for (;;) {
    const candidate = `${folder === '' ? '' : `${folder}/`}${modules}${name}`;
    if (known.has(candidate) || folder === '') return candidate;
    const above = folder.lastIndexOf(`/${modules}`);
    folder = above < 0 ? '' : folder.slice(0, above);
  }
}

function needsOf(entry: unknown): string[] {
  const lists = ['dependencies', 'optionalDependencies', 'peerDependencies'];
  return [...new Set(lists.flatMap((list) => Object.keys(recordAt(entry, list))))];
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(modules) + modules.length);
}

/** A package URL (https://github.com/package-url/purl-spec); the @ of a scope is encoded. */
function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function licensesOf(entry: unknown): JsonRecord[] {
  const license = textAt(entry, 'license');
  if (license === '') return [];
  return [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }];
}

/** Where a package comes from, if the lock says so: ours does not, it presumes no registry. */
function distributionOf(url: string): JsonRecord {
  return url === '' ? {} : { externalReferences: [{ type: 'distribution', url }] };
}

/** Of npm's `integrity`, such as `sha512-…` in base64. */
function hashesOf(integrity: string): JsonRecord[] {
  const [algorithm = '', value = ''] = integrity.split('-');
  if (algorithm !== 'sha512') return [];
  return [{ alg: 'SHA-512', content: Buffer.from(value, 'base64').toString('hex') }];
}

if (import.meta.main) {
  const path = fileURLToPath(new URL('../package-lock.json', import.meta.url));
  const lock: unknown = JSON.parse(readFileSync(path, 'utf8'));
  process.stdout.write(
    `${JSON.stringify(billOfMaterials(lock, process.argv.includes('--all')), undefined, 2)}\n`,
  );
}
