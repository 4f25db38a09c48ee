/**
 * Writes src/commands/address-pools.generated.json from deploy/crds: `up` defines AddressPools at every start, and must
 * not load a YAML parser (10 MiB) for that. test/unit/commands/address-pools.test.ts fails when the two differ.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';

const source = new URL('../deploy/crds/servicenet.dev_addresspools.yaml', import.meta.url);
const output = new URL('../src/commands/address-pools.generated.json', import.meta.url);
writeFileSync(output, `${JSON.stringify(parse(readFileSync(source, 'utf8')))}\n`);
