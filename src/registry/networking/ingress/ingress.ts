import type { KubeObject } from '../../../objects/meta.ts';

/** Networking.k8s.io/v1 Ingress. */
export interface Ingress extends KubeObject {
  spec: IngressSpec;
  status: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface IngressSpec {
  ingressClassName?: string;
  defaultBackend?: IngressBackend;
  tls?: { hosts?: string[]; secretName?: string }[];
  rules?: IngressRule[];
}

export interface IngressRule {
  host?: string;
  http?: { paths?: IngressPath[] };
}

export interface IngressPath {
  path?: string;
  /** A pointer without omitempty: null when it is absent. */
  pathType?: string | null;
  backend?: IngressBackend;
}

export interface IngressBackend {
  service?: { name?: string; port?: { name?: string; number?: number } };
  resource?: { apiGroup?: string | null; kind?: string; name?: string };
}

/** The annotation that names the class, the predecessor of `spec.ingressClassName`. */
export const ingressClassAnnotation = 'kubernetes.io/ingress.class';
