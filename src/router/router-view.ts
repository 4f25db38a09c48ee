import type { Logger } from 'pino';
import type { Informer, Informers } from '../client/informers/informer.ts';
import { endpointSlices, ingressClasses, ingresses, routes, secrets, services } from '../client/resources.ts';
import type { RoutingTable } from '../network/http/routing-table.ts';
import { type IngressSelection, isServedIngress } from '../network/http/ingress.ts';
import { restrictionProblem } from '../network/http/route-annotations.ts';
import { type ClaimChanges, dynamicHeaderProblem, type RouteRefusal } from '../network/http/route-claims.ts';
import { type KeyPair, plainHost, routeRule } from '../network/http/rules.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { Secret, Service } from '../objects/types/core.generated.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';
import type { Ingress, IngressClass } from '../objects/types/networking.generated.ts';
import type { Route } from '../objects/types/route.generated.ts';
import {
  type Certificates,
  inlinePair,
  keyPairProblem,
  type OfferedCertificate,
  tlsProblem,
} from './certificates.ts';
import type { ServiceReader } from './backends.ts';
import { serviceNameLabel } from '../objects/endpoints.ts';

export interface RouterViewOptions {
  readonly informers: Informers;
  readonly table: RoutingTable;
  readonly certificates: Certificates;
  readonly log: Logger;
  readonly selection: IngressSelection;
  /** Whether the API server serves Routes. */
  readonly routes: boolean;
  /** The Secret of the default certificate: `namespace/name`. */
  readonly defaultCertificate: ObjectKey | undefined;
}

/** Why hosts of an Ingress have no certificate: the reason and message of an Event. */
export interface CertificateProblem {
  readonly reason: 'SecretNotFound' | 'InvalidCertificate';
  readonly message: string;
}

const byService = 'service';

/** Follows the objects that requests are decided by, and keeps the table and the certificates. */
export class RouterView implements ServiceReader {
  readonly ingresses: Informer<Ingress>;
  readonly routes: Informer<Route> | undefined;
  /** Is called when a Service or slice has changed. */
  onBackends: () => void = () => undefined;
  /** Is called with the key of each Ingress that is served, or was, and may need another status. */
  onIngress: (key: ObjectKey) => void = () => undefined;
  /** Is called with the key of each Route whose admission may be another. */
  onRoute: (key: ObjectKey) => void = () => undefined;

  readonly #options: RouterViewOptions;
  readonly #classes: Informer<IngressClass>;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #secrets: Informer<Secret>;
  /** The objects that name a Secret, by its key. */
  readonly #users = new Map<ObjectKey, Map<string, () => void>>();
  readonly #used = new Map<string, ReadonlySet<ObjectKey>>();
  readonly #problems = new Map<ObjectKey, CertificateProblem>();
  /** Those of them that were deleted. */
  readonly #deleted = new Set<ObjectKey>();

  constructor(options: RouterViewOptions) {
    const { informers } = options;
    this.#options = options;
    this.#secrets = informers.informer(secrets, { transform: certificateOnly });
    this.#classes = informers.informer(ingressClasses);
    this.#services = informers.informer(services);
    this.#slices = informers.informer(endpointSlices);
    this.#slices.addIndex(byService, ({ metadata }) => [
      joinKey(metadata.namespace ?? '', metadata.labels?.[serviceNameLabel] ?? ''),
    ]);
    this.ingresses = informers.informer(ingresses);
    this.routes = options.routes ? informers.informer(routes) : undefined;
    follow(this.#services, () => this.onBackends());
    follow(this.#slices, () => this.onBackends());
    this.#secrets.addHandler({
      added: (secret) => this.#deleted.delete(keyOf(secret)),
      deleted: (secret) => {
        const key = keyOf(secret);
        if (this.#users.has(key)) this.#deleted.add(key);
      },
    });
    follow(this.#secrets, (key) => {
      for (const use of [...(this.#users.get(key)?.values() ?? [])]) use();
    });
    follow(this.#classes, () => {
      for (const key of this.ingresses.cache.keys()) this.#ingress(key);
    });
    follow(this.ingresses, (key) => this.#ingress(key));
    if (this.routes !== undefined) follow(this.routes, (key) => this.#route(key));
    const { defaultCertificate } = options;
    if (defaultCertificate !== undefined) this.#useDefault(defaultCertificate);
  }

  /** Whether all that the API server has is in the table. Never turns false again. */
  get hasSynced(): boolean {
    return this.#sources.every((source) => source.hasSynced);
  }

  /** Resolves true when synced, false when the signal aborts first. */
  async synced(signal: AbortSignal): Promise<boolean> {
    await Promise.all(this.#sources.map((source) => source.synced(signal)));
    // From now on an object that is not in the cache does not exist.
    const uses = [...this.#users.values()].flatMap((users) => [...users.values()]);
    if (this.hasSynced) for (const use of uses) use();
    return this.hasSynced;
  }

  /** The problem of a Secret of a served Ingress; undefined if there is none. */
  certificateProblem(key: ObjectKey): CertificateProblem | undefined {
    return this.#problems.get(key);
  }

  service(key: ObjectKey): Service | undefined {
    return this.#services.cache.get(key);
  }

  slices(key: ObjectKey): readonly EndpointSlice[] {
    return this.#slices.cache.byIndex(byService, key);
  }

  /** Whether an Ingress is of this router. */
  serves(ingress: Ingress): boolean {
    return isServedIngress(ingress, this.#options.selection, (name) => this.#classes.cache.get(name));
  }

  get #sources(): readonly Informer<KubeObject>[] {
    const { ingresses: own, routes: optional } = this;
    return [
      own,
      this.#classes,
      this.#services,
      this.#slices,
      this.#secrets,
      ...(optional === undefined ? [] : [optional]),
    ];
  }

  #ingress(key: ObjectKey): void {
    const ingress = this.ingresses.cache.get(key);
    const served = ingress !== undefined && this.serves(ingress) ? ingress : undefined;
    this.#changed(this.#options.table.setIngress(key, served));
  }

  #changed({ ingresses: hosts, routes: admissions }: ClaimChanges): void {
    for (const key of hosts) this.#offerIngress(key);
    for (const key of admissions) {
      this.#offer(key);
      this.onRoute(key);
    }
  }

  /** The certificates of an Ingress, for the hosts that it has. */
  #offerIngress(key: ObjectKey): void {
    const { table, certificates, log } = this.#options;
    const ingress = this.ingresses.cache.get(key);
    const served = ingress !== undefined && this.serves(ingress) ? ingress : undefined;
    const refused = table.refusedHosts(key);
    const user = `Ingress ${key}`;
    const offered: OfferedCertificate[] = [];
    const used = new Set<ObjectKey>();
    this.#problems.delete(key);
    for (const { secretName = '', hosts } of served?.spec.tls ?? []) {
      if (secretName === '') continue;
      const secret = joinKey(served?.metadata.namespace ?? '', secretName);
      used.add(secret);
      const pair = this.#pairOf(secret);
      const problem = pair === undefined ? undefined : keyPairProblem(pair);
      if (pair === undefined || problem !== undefined) {
        if (this.#secrets.hasSynced) {
          const reason = pair === undefined ? 'SecretNotFound' : 'InvalidCertificate';
          const why = problem ?? 'it is not there, or has no tls.crt and tls.key';
          this.#problems.set(key, { reason, message: `no certificate by the Secret ${secretName}: ${why}` });
          log.warn(
            { reason, ingress: key, secret, problem },
            'the hosts of an Ingress get no certificate by its Secret',
          );
        }
        continue;
      }
      const ofRules = (served?.spec.rules ?? []).map(({ host = '' }) => host).filter((host) => host !== '');
      const all = hosts === undefined || hosts.length === 0 ? ofRules : hosts;
      offered.push({ hosts: all.filter((host) => !refused.has(plainHost(host))), pair });
    }
    certificates.set(user, served?.metadata.creationTimestamp ?? '', offered);
    this.#use(user, used, () => this.#ingress(key));
    this.onIngress(key);
  }

  #route(key: ObjectKey): void {
    const { table } = this.#options;
    const route = this.routes?.cache.get(key);
    const external = route?.spec.tls?.externalCertificate?.name ?? '';
    const secret = external === '' ? undefined : joinKey(route?.metadata.namespace ?? '', external);
    const pair = secret === undefined ? inlinePair(route) : this.#pairOf(secret);
    const problem =
      route === undefined
        ? undefined
        : (tlsProblem(route) ??
          dynamicHeaderProblem(route) ??
          restrictionRefusal(route) ??
          this.#externalProblem(secret, pair));
    const changes = table.setRoute(key, route, problem);
    this.#use(`Route ${key}`, new Set(secret === undefined ? [] : [secret]), () => this.#route(key));
    this.#changed(changes);
  }

  /** The certificate of a Route is served while the Route is. */
  #offer(key: ObjectKey): void {
    const { table, certificates } = this.#options;
    const route = this.routes?.cache.get(key);
    const admission = table.admissionOf(key);
    const external = route?.spec.tls?.externalCertificate?.name ?? '';
    const pair =
      external === '' ? inlinePair(route) : this.#pairOf(joinKey(route?.metadata.namespace ?? '', external));
    const isOffered =
      route !== undefined && admission !== undefined && admission.refusal === undefined && pair !== undefined;
    certificates.set(
      `Route ${key}`,
      route?.metadata.creationTimestamp ?? '',
      isOffered ? [{ hosts: [routeRule(route, admission.host).host], pair }] : [],
    );
  }

  #useDefault(secret: ObjectKey): void {
    const { certificates, log } = this.#options;
    const load = (): void => {
      const pair = this.#pairOf(secret);
      const problem = pair === undefined ? undefined : keyPairProblem(pair);
      if (problem !== undefined)
        log.warn({ reason: 'InvalidCertificate', secret, problem }, 'no default certificate');
      certificates.setDefault(problem === undefined ? pair : undefined);
    };
    this.#use('default', new Set([secret]), load);
    load();
  }

  /** Calls `use` again when one of these Secrets changes. */
  #use(user: string, used: ReadonlySet<ObjectKey>, use: () => void): void {
    for (const secret of this.#used.get(user) ?? []) {
      const users = this.#users.get(secret);
      users?.delete(user);
      if (users?.size === 0) this.#users.delete(secret);
    }
    this.#used.delete(user);
    for (const secret of this.#deleted)
      if (!this.#users.has(secret) && !used.has(secret)) this.#deleted.delete(secret);
    if (used.size === 0) return;
    this.#used.set(user, used);
    for (const secret of used) {
      const users = this.#users.get(secret) ?? new Map<string, () => void>();
      this.#users.set(secret, users.set(user, use));
    }
  }

  /** The problem of the Secret of a Route's certificate. */
  #externalProblem(secret: ObjectKey | undefined, pair: KeyPair | undefined): RouteRefusal | undefined {
    if (secret === undefined) return undefined;
    if (pair !== undefined) {
      const message = keyPairProblem(pair);
      return message === undefined ? undefined : { reason: 'ExternalCertificateValidationFailed', message };
    }
    if (this.#deleted.has(secret)) {
      return { reason: 'ExternalCertificateSecretDeleted', message: `the Secret ${secret} has been deleted` };
    }
    // The cache is not filled yet: the Secret may exist.
    const message = this.#secrets.hasSynced
      ? `there is no Secret ${secret} with tls.crt and tls.key`
      : 'Secrets are read yet';
    return { reason: 'ExternalCertificateGetFailed', message };
  }

  #pairOf(secret: ObjectKey): KeyPair | undefined {
    const found = this.#secrets.cache.get(secret);
    return found === undefined ? undefined : decodedPair(found);
  }
}

/** The certificate and key of a Secret; undefined where one of them is missing. */
export function decodedPair({ data }: Secret): KeyPair | undefined {
  const { 'tls.crt': certificate, 'tls.key': key } = data ?? {};
  if (certificate === undefined || key === undefined) return undefined;
  return { certificate: fromBase64(certificate), key: fromBase64(key) };
}

function restrictionRefusal({ metadata }: Route): RouteRefusal | undefined {
  const message = restrictionProblem(metadata.annotations ?? {});
  return message === undefined ? undefined : { reason: 'UnsupportedRestriction', message };
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8');
}

/** Other Secrets are not needed, and not kept in memory. */
export function certificateOnly(secret: Secret): Secret {
  const { 'tls.crt': certificate, 'tls.key': key } = secret.data ?? {};
  secret.data =
    certificate === undefined || key === undefined ? {} : { 'tls.crt': certificate, 'tls.key': key };
  return secret;
}

function follow<T extends KubeObject>(informer: Informer<T>, changed: (key: ObjectKey) => void): void {
  informer.addHandler({
    added: (object) => changed(keyOf(object)),
    updated: (object) => changed(keyOf(object)),
    deleted: (object) => changed(keyOf(object)),
  });
}
