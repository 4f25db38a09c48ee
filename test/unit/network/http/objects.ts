import type {
  Ingress,
  IngressRule,
  IngressSpec,
} from '../../../../src/objects/types/networking.generated.ts';
import type { Route, RouteSpec } from '../../../../src/objects/types/route.generated.ts';

/** Whole seconds after the hour, as `creationTimestamp` has them. */
function created(age: number): string {
  return new Date(Date.UTC(2026, 0, 1) + age * 1000).toISOString().replace('.000Z', 'Z');
}

export function ingress(name: string, spec: IngressSpec, age = 0, annotations = {}): Ingress {
  const [namespace = '', own = ''] = name.split('/');
  const metadata = { namespace, name: own, uid: `uid-${name}`, creationTimestamp: created(age), annotations };
  return { metadata, spec, status: {} };
}

/** `[path, type, Service]`, all to port 80. */
export function rule(host: string, ...paths: readonly (readonly [string, string, string])[]): IngressRule {
  return {
    host,
    http: {
      paths: paths.map(([path, pathType, name]) => ({
        ...{ path, pathType },
        backend: { service: { name, port: { number: 80 } } },
      })),
    },
  };
}

export function route(name: string, spec: Partial<RouteSpec>, age = 0): Route {
  const [namespace = '', own = ''] = name.split('/');
  const metadata = { namespace, name: own, uid: `uid-${name}`, creationTimestamp: created(age) };
  return { metadata, spec: { to: { kind: 'Service', name: own }, ...spec }, status: {} };
}
