import type { Transport } from '../../client/transport.ts';
import { isNotFound } from '../../client/errors.ts';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { type Kind, asksFor, needsCheck, kindsToCheck, paramKindOf } from './plan.ts';
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicy,
} from '../../objects/types/admissionregistration.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { discover } from '../../client/discovery.ts';
import { type ControllerSpec, ownKey } from '../../runtime/key-loop.ts';
import { inGroup } from '../../client/resources.ts';

/** A kind with its schema in an OpenAPI v3 document. */
export interface KindSchema extends Kind {
  readonly schemas: JsonRecord;
  readonly schema: string;
}

/**
 * The schemas of kinds, from the OpenAPI v3 documents of a server; kinds without a schema are left out.
 *
 * @throws what {@link Transport.request} throws, unless the document is not there.
 */
async function kindSchemas(
  transport: Transport,
  kinds: readonly Kind[],
  signal: AbortSignal,
): Promise<KindSchema[]> {
  const documents = new Map<string, JsonRecord>();
  const found: KindSchema[] = [];
  for (const kind of kinds) {
    const path = kind.group === '' ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;
    const schemas = documents.get(path) ?? (await schemasAt(transport, path, signal));
    documents.set(path, schemas);
    const schema = Object.keys(schemas).find((name) => describes(schemas[name], kind));
    if (schema !== undefined) found.push({ ...kind, schemas, schema });
  }
  return found;
}

async function schemasAt(transport: Transport, path: string, signal: AbortSignal): Promise<JsonRecord> {
  try {
    const document = (await transport.request('GET', `/openapi/v3/${path}`, { signal })).json();
    const components = isRecord(document) ? document['components'] : undefined;
    const schemas = isRecord(components) ? components['schemas'] : undefined;
    return isRecord(schemas) ? schemas : {};
  } catch (error) {
    if (isNotFound(error)) return {};
    throw error;
  }
}

function describes(schema: unknown, { group, version, kind }: Kind): boolean {
  const kinds: unknown = isRecord(schema) ? schema['x-kubernetes-group-version-kind'] : undefined;
  return (
    Array.isArray(kinds) &&
    kinds.some(
      (one: unknown) =>
        isRecord(one) && one['group'] === group && one['version'] === version && one['kind'] === kind,
    )
  );
}

const name = 'validatingadmissionpolicy-status-controller';

const policies = inGroup('admissionregistration.k8s.io')<ValidatingAdmissionPolicy>(
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
  ['spec'],
  { namespaced: false },
);

/** Options of {@link policyStatusController}. */
export interface PolicyStatusOptions {
  readonly transport: Transport;
  /** The type errors of a policy's expressions for the kinds. */
  readonly checkTypes: (
    policy: KubeObject,
    kinds: readonly KindSchema[],
    params: KindSchema | undefined,
  ) => Promise<readonly ExpressionWarning[]>;
}

/**
 * Writes the type errors of each ValidatingAdmissionPolicy's expressions into its status (kube-controller-manager's
 * `validatingadmissionpolicy-status-controller`), once for each generation.
 */
export function policyStatusController({ transport, checkTypes }: PolicyStatusOptions): ControllerSpec {
  return {
    name,
    eventSource: 'validatingadmissionpolicy-status',
    queue: 'validatingadmissionpolicy-status',
    build(loop) {
      const { clients, log } = loop.context;
      const client = clients.for(policies);
      const informer = loop.cache(policies);

      loop.on(informer, (change) => (change.kind === 'deleted' ? [] : ownKey(change)));

      const check = async (policy: ValidatingAdmissionPolicy, signal: AbortSignal): Promise<void> => {
        const { resources, failures } = await discover(transport, signal);
        // Retried: without schemas the kinds would count as unknown, and the generation as checked.
        const unread = failures.find(
          ({ group, version, error }) => !isNotFound(error) && asksFor(policy, group, version),
        );
        if (unread !== undefined) throw unread.error;
        const kinds = await kindSchemas(transport, kindsToCheck(policy, resources), signal);
        const paramKind = paramKindOf(policy);
        const [params] = paramKind === undefined ? [] : await kindSchemas(transport, [paramKind], signal);
        const expressionWarnings = await checkTypes(policy, kinds, params);
        const status = {
          observedGeneration: policy.metadata.generation ?? 0,
          typeChecking:
            expressionWarnings.length === 0 ? {} : { expressionWarnings: [...expressionWarnings] },
        };
        await client.applyPatch(
          { metadata: { name: policy.metadata.name ?? '' }, status },
          { subresource: 'status', fieldManager: name, force: true, signal },
        );
        log.info({ key: policy.metadata.name, warnings: expressionWarnings.length }, 'policy checked');
      };

      return async (key, signal) => {
        const policy = informer.cache.get(key);
        if (policy === undefined || !needsCheck(policy)) return undefined;
        try {
          await check(policy, signal);
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
        return undefined;
      };
    },
  };
}
