import type { Container, ContainerPort, PodSpec, PodTemplateSpec } from './types.ts';

/**
 * What is allowed but most probably not meant, in a Pod or the template of a workload (`pkg/api/pod/warnings.go`,
 * without what it says of affinity, volumes and annotations).
 *
 * @param path of the spec.
 */
export function podWarnings(spec: PodSpec, path: string): string[] {
  const warnings = [
    ...repeated(spec.hostAliases ?? [], 'ip').map(
      ({ i, value }) => `${path}.hostAliases[${i}].ip: duplicate ip ${value}`,
    ),
    ...repeated(spec.imagePullSecrets ?? [], 'name').map(
      ({ i, value }) => `${path}.imagePullSecrets[${i}].name: duplicate name ${value}`,
    ),
  ];
  const containers = placedContainers(spec, path);
  for (const { container, at } of containers) warnings.push(...environmentWarnings(container, `${at}.env`));
  warnings.push(...portWarnings(containers));
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    const text = 'must be >= 0; negative values are invalid and will be treated as 1';
    warnings.push(`${path}.terminationGracePeriodSeconds: ${text}`);
  }
  return warnings;
}

/** The warnings of a workload's template, below `spec.template`. */
export function templateWarnings(template: PodTemplateSpec | undefined): string[] {
  return template?.spec === undefined ? [] : podWarnings(template.spec, 'spec.template.spec');
}

interface PlacedContainer {
  readonly container: Container;
  readonly at: string;
}

/** Init containers come first. */
function placedContainers(spec: PodSpec, path: string): PlacedContainer[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, at: `${path}.${list}[${i}]` })),
  );
}

/** A variable that is set twice without using its first value. */
function environmentWarnings({ env = [] }: Container, path: string): string[] {
  const seen = new Set<string>();
  return env.flatMap(({ name = '', value = '', valueFrom }, i) => {
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    const reference = `$(${name})`;
    if (valueFrom === undefined && value !== reference && value.includes(reference)) return [];
    return [
      `${path}[${i}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
    ];
  });
}

function portWarnings(containers: readonly PlacedContainer[]): string[] {
  const known = new Map<string, { readonly port: ContainerPort; readonly at: string }[]>();
  return containers.flatMap(({ container, at: containerPath }) =>
    (container.ports ?? []).flatMap((port, i) => {
      const at = `${containerPath}.ports[${i}]`;
      const key = `${port.containerPort}/${port.protocol ?? ''}`;
      const others = known.get(key) ?? [];
      const warnings = others.flatMap((other) => {
        const clash = clashOf(port, other.port);
        return clash === '' ? [] : [`${at}: ${clash} port definition with ${other.at}`];
      });
      known.set(key, [...others, { port, at }]);
      return warnings;
    }),
  );
}

/** How two definitions of the same container port and protocol get in each other's way. */
function clashOf(a: ContainerPort, b: ContainerPort): string {
  const { hostPort: portA = 0, hostIP: addressA = '' } = a;
  const { hostPort: portB = 0, hostIP: addressB = '' } = b;
  if (portA === portB && addressA === addressB) return 'duplicate';
  if (portA === 0 || portB === 0) return 'overlapping';
  return portA === portB && (addressA === '') !== (addressB === '') ? 'dangerously ambiguous' : '';
}

/** The items whose member was there before, its value quoted. */
function repeated<T extends object>(items: readonly T[], member: keyof T): { i: number; value: string }[] {
  const values = items.map((item) => JSON.stringify(item[member] ?? ''));
  return values.flatMap((value, i) => (values.indexOf(value) < i ? [{ i, value }] : []));
}
