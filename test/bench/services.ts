/**
 * What the rules of Services cost without HTTP and storage, in µs per request: `node test/bench/services.ts`.
 * Prints a table and writes bench-results/services.json. A create over HTTP may take 250 µs of one core in all
 * (DESIGN.md: 4,000 a second); its rules shall take less than 50.
 */
import type { Service } from '../../src/objects/types/core.generated.ts';
import { validateCommonFields } from '../../src/registry/generic/metadata.ts';
import { ServiceAllocators } from '../../src/registry/core/service/allocators.ts';
import type { ClusterFamilies } from '../../src/registry/core/service/families.ts';
import { createServiceStrategy } from '../../src/registry/core/service/strategy.ts';
import type { Strategy, StrategyContext } from '../../src/registry/generic/strategy.ts';
import { report, type Row } from './report.ts';

const budget = '≤ 50 µs';
const rounds = 5;
const context: StrategyContext = {
  now: '2026-01-01T00:00:00Z',
  random: Math.random,
  dryRun: false,
  cluster: { list: () => [], get: () => undefined },
};

interface Kind {
  readonly name: string;
  readonly families: ClusterFamilies;
  readonly type: string;
  /** Few enough that the range does not fill up. */
  readonly count: number;
}

const kinds: Kind[] = [
  { name: 'ClusterIP', families: ['IPv4'], type: 'ClusterIP', count: 20_000 },
  { name: 'NodePort', families: ['IPv4'], type: 'NodePort', count: 1_200 },
  { name: 'ClusterIP, dual-stack', families: ['IPv4', 'IPv6'], type: 'ClusterIP', count: 20_000 },
];

function manifest(index: number, { type, families }: Kind): Service {
  return {
    metadata: { name: `web-${index}`, namespace: 'shop', labels: { 'app.kubernetes.io/name': 'web' } },
    spec: {
      type,
      selector: { 'app.kubernetes.io/name': 'web' },
      ports: [
        { name: 'http', port: 80, targetPort: 'http' },
        { name: 'https', port: 443, targetPort: 8443 },
      ],
      ...(families.length === 2 ? { ipFamilyPolicy: 'PreferDualStack' } : {}),
    },
    status: {},
  };
}

function create(strategy: Strategy<Service>, service: Service): void {
  strategy.setDefaults(service);
  const reservation = strategy.beginCreate?.(service, context);
  strategy.prepareForCreate(service, context);
  if (strategy.validateCreate(service, context).length > 0) throw new Error('the manifest is not valid');
  strategy.warningsOnCreate?.(service);
  reservation?.commit();
}

function update(strategy: Strategy<Service>, service: Service, old: Service): void {
  strategy.setDefaults(service);
  const reservation = strategy.beginUpdate?.(service, old, context);
  strategy.prepareForUpdate(service, old, context);
  const errors = validateCommonFields(service.metadata, old.metadata, true);
  if (errors.length + strategy.validateUpdate(service, old, context).length > 0) throw new Error('not valid');
  strategy.warningsOnUpdate?.(service, old);
  reservation?.commit();
}

/** The fastest of some rounds, in µs for one of `count`. */
function best(count: number, times: readonly number[]): number {
  return (Math.min(...times) * 1000) / count;
}

function measure(kind: Kind): Row[] {
  const allocators = new ServiceAllocators({
    families: kind.families,
    nodePortRange: { first: 30000, last: 32767 },
  });
  allocators.setServiceCIDR('kubernetes', ['10.0.0.0/12', 'fd00:10:96::/108'], true);
  const strategy = createServiceStrategy(allocators);
  const times = { create: new Array<number>(), update: new Array<number>(), delete: new Array<number>() };
  for (let round = 0; round < rounds; round++) {
    const services = Array.from({ length: kind.count }, (_, i) => manifest(i, kind));
    const changed = Array.from({ length: kind.count }, (_, i) => manifest(i, kind));
    const started = performance.now();
    for (const service of services) create(strategy, service);
    const created = performance.now();
    services.forEach((old, i) => {
      const next = changed[i];
      if (next !== undefined) update(strategy, next, old);
    });
    const updated = performance.now();
    for (const service of changed) strategy.beginDelete?.(service, context).commit();
    times.create.push(created - started);
    times.update.push(updated - created);
    times.delete.push(performance.now() - updated);
  }
  return [
    { name: `create ${kind.name}`, value: best(kind.count, times.create), unit: 'µs', budget },
    { name: `update ${kind.name}`, value: best(kind.count, times.update), unit: 'µs', budget },
    { name: `delete ${kind.name}`, value: best(kind.count, times.delete), unit: 'µs', budget },
  ];
}

await report('services', kinds.flatMap(measure));
