/** The table of Routes (openshift-apiserver `route/printers/internalversion`). */
import { listAt, numberAt, recordAt, textAt, at } from '../../objects/read.ts';
import { column, nameColumn, nameOf, type TableConverter } from './table.ts';

export const routesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Host/Port', 'The host that is served, or the reason why not.'),
    column('Path', 'The prefix of the paths.'),
    column('Services', 'Primary and alternate route backends.'),
    column('Port', 'The port of the Services.'),
    column('Termination', 'Indicates termination type.'),
    column('Wildcard', 'The wildcard policy.'),
  ],
  cells: (object) => [
    nameOf(object),
    host(object),
    textAt(object, 'spec', 'path'),
    services(object),
    port(at(object, 'spec', 'port', 'targetPort')),
    termination(object),
    textAt(object, 'spec', 'wildcardPolicy'),
  ],
};

/** The host that a router admitted, that of the spec before others; else the reason of the last rejection. */
function host(route: unknown): string {
  const own = textAt(route, 'spec', 'host');
  const routers = listAt(route, 'status', 'ingress').map((entry) => ({
    host: textAt(entry, 'host'),
    condition: listAt(entry, 'conditions').find((condition) => textAt(condition, 'type') === 'Admitted'),
  }));
  if (routers.length === 0) return own;
  const admitted = routers.filter(({ condition }) => textAt(condition, 'status') === 'True');
  const refused = routers.filter(({ condition }) => textAt(condition, 'status') === 'False');
  const matching = admitted.findIndex((router) => router.host === own);
  const shown = admitted.at(matching)?.host ?? own;
  if (refused.length > 0) {
    return admitted.length === 0
      ? textAt(refused.at(-1)?.condition, 'reason')
      : `${shown} ... ${refused.length} rejected`;
  }
  if (admitted.length === 0) return 'Pending';
  return admitted.length === 1 ? shown : `${shown} ... ${admitted.length - 1} more`;
}

/** The Services, each with its share of the requests where there are several. */
function services(route: unknown): string {
  const backends = [recordAt(route, 'spec', 'to'), ...listAt(route, 'spec', 'alternateBackends')];
  const weights = backends.map((backend) => numberAt(backend, 'weight'));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return backends
    .map((backend, i) => {
      const name = textAt(backend, 'name');
      if (typeof at(backend, 'weight') !== 'number' || (backends.length === 1 && total !== 0)) return name;
      const share = total === 0 ? 0 : Math.trunc(((weights[i] ?? 0) * 100) / total);
      return `${name}(${share}%)`;
    })
    .join(',');
}

function port(target: unknown): string {
  return typeof target === 'string' || typeof target === 'number' ? String(target) : '<all>';
}

function termination(route: unknown): string {
  const kind = textAt(route, 'spec', 'tls', 'termination');
  const insecure = textAt(route, 'spec', 'tls', 'insecureEdgeTerminationPolicy');
  if (insecure === '') return kind;
  return `${kind === '' ? 'default' : kind}/${insecure}`;
}
