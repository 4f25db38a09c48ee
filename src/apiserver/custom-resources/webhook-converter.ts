import { isRecord, type JsonRecord, textAt, at, listAt } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { aggregateText } from '../../registry/validation/field-errors.ts';
import { validateAnnotations } from '../../registry/generic/metadata.ts';
import { validateLabels } from '../../registry/validation/label-selector.ts';
import {
  type ReviewKind,
  type ReviewVersion,
  isReviewVersion,
  readAnswer,
  type ConnectedWebhook,
  type WebhookClient,
} from '../admission/webhooks/client.ts';
import { typeText } from '../admission/webhooks/review.ts';
import type { CustomResourceDefinition } from '../../objects/types/apiextensions.generated.ts';
import { plainError, errorMessage } from '../../objects/status.ts';
import { encodeSorted } from '../schema/encode.ts';

/**
 * - What a conversion may change of an object (apiextensions `apiserver/conversion/webhook_converter.go`).
 * - ConversionReview, v1 and v1beta1 (apiextensions `apiserver/conversion/webhook_converter.go`).
 */

/** @throws {Error} when the converted object is another one than the original (`validateConvertedObject`). */
function checkSameObject(original: KubeObject, converted: JsonRecord): void {
  const { name = '', namespace = '', uid = '' } = original.metadata;
  const requireSame = (field: string, before: string, after: string): void => {
    if (before !== after) throw new Error(`must have the same ${field}: ${before} != ${after}`);
  };
  requireSame('kind', original.kind ?? '', textAt(converted, 'kind'));
  requireSame('name', name, textAt(converted, 'metadata', 'name'));
  requireSame('namespace', namespace, textAt(converted, 'metadata', 'namespace'));
  requireSame('UID', uid, textAt(converted, 'metadata', 'uid'));
}

/**
 * The original metadata with the labels and annotations of the converted object (`restoreObjectMeta`).
 *
 * @throws {Error} when these are missing or invalid.
 */
function convertedMetadata(original: ObjectMeta, converted: JsonRecord): ObjectMeta {
  if (!Object.hasOwn(converted, 'metadata')) throw new Error('missing metadata in converted object');
  const { metadata: convertedMeta } = converted;
  if (!isRecord(convertedMeta))
    throw new Error(`invalid metadata of type ${goType(convertedMeta)} in converted object`);
  const { labels: _labels, annotations: _annotations, ...rest } = structuredClone(original);
  const metadata: ObjectMeta = rest;
  const labels = textsOf(convertedMeta, 'labels', original.labels, (texts) =>
    validateLabels(texts, 'metadata.labels'),
  );
  if (labels !== undefined) metadata.labels = labels;
  const annotations = textsOf(convertedMeta, 'annotations', original.annotations, (texts) =>
    validateAnnotations(texts, 'metadata.annotation'),
  );
  if (annotations !== undefined) metadata.annotations = annotations;
  return metadata;
}

/** A map of strings, validated if it has changed; undefined for an empty one. @throws {Error} */
function textsOf(
  metadata: JsonRecord,
  member: 'labels' | 'annotations',
  before: Readonly<Record<string, string>> = {},
  validate: (texts: Record<string, string>) => Parameters<typeof aggregateText>[0],
): Record<string, string> | undefined {
  const value = metadata[member];
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    throw new Error(`invalid metadata.${member} of type ${goType(value)} in converted object`);
  }
  const texts = new Map<string, string>();
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string') {
      const type = goType(text);
      throw new Error(`metadata.${member}[${name}] must be a string, but is ${type} in converted object`);
    }
    texts.set(name, text);
  }
  const found = Object.fromEntries(texts);
  const sameNumber = texts.size === Object.keys(before).length;
  const same = sameNumber && [...texts].every(([name, text]) => before[name] === text);
  const errors = same ? [] : validate(found);
  if (errors.length > 0) throw new Error(aggregateText(errors));
  return texts.size === 0 ? undefined : found;
}

/** The Go type of a JSON value, as `%T` prints it. */
function goType(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}

const group = 'apiextensions.k8s.io';
const kind = 'ConversionReview';

/** The review that asks a webhook to convert objects, and answers. */
const conversionReview: ReviewKind = {
  group,
  kind,
  schema: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ConversionReview',
};

/**
 * The body of the request to a webhook, with the members in Go's order. It has an empty response, as in kube-apiserver.
 *
 * @param objects JSON of the objects.
 * @param apiVersion the desired one, `<group>/<version>`.
 */
function conversionReviewOf(
  objects: readonly string[],
  apiVersion: string,
  version: ReviewVersion,
  uid: string,
): string {
  const head = JSON.stringify({ kind, apiVersion: `${group}/${version}` }).slice(0, -1);
  const request = JSON.stringify({ uid, desiredAPIVersion: apiVersion }).slice(0, -1);
  const response = '{"uid":"","convertedObjects":null,"result":{"metadata":{}}}';
  return `${head},"request":${request},"objects":[${objects.join(',')}]},"response":${response}}`;
}

/**
 * The objects of a response (`getConvertedObjectsFromResponse`). Responses of v1beta1 need no uid.
 *
 * @throws {Error} with kube-apiserver's message for an invalid response or a failure.
 */
function convertedObjects(review: JsonRecord, version: ReviewVersion, uid: string): readonly unknown[] {
  if (version === 'v1') {
    const wanted = typeText(`${group}/v1`, kind);
    const got = typeText(textAt(review, 'apiVersion'), textAt(review, 'kind'));
    if (got !== wanted) throw new Error(`expected webhook response of ${wanted}, got ${got}`);
  }
  const response = at(review, 'response');
  if (response === undefined) throw new Error('no response provided');
  const answered = textAt(response, 'uid');
  if (version === 'v1' && answered !== uid) {
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(answered)}`);
  }
  const status = textAt(response, 'result', 'status');
  if (status !== 'Success') {
    const message = textAt(response, 'result', 'message');
    throw new Error(message === '' ? `response.result.status was '${status}', not 'Success'` : message);
  }
  return listAt(response, 'convertedObjects');
}

/** For one call with all its retries (`apiserver/pkg/util/webhook/authentication.go`). */
const timeoutSeconds = 30;
/** Limits of one call, so that a long list does not delay other requests, here or in the webhook. */
const maxObjects = 500;
const maxCharacters = 1024 * 1024;

/** The dependencies of a converter. */
export interface ConverterContext {
  connect(webhook: ConnectedWebhook): WebhookClient;
  newUid(): string;
}

/**
 * Converts objects by the webhook of a definition (apiextensions `apiserver/conversion`). Its errors are those of
 * kube-apiserver, with the code 500.
 */
export class WebhookConverter {
  readonly #client: WebhookClient;
  readonly #reviewVersion: ReviewVersion;
  /** `<group>/<version>` of all versions that the definition has. */
  readonly #apiVersions: ReadonlySet<string>;
  readonly #newUid: () => string;

  constructor({ spec }: CustomResourceDefinition, context: ConverterContext) {
    const { clientConfig = {}, conversionReviewVersions } = spec.conversion?.webhook ?? {};
    this.#client = context.connect({ clientConfig, timeoutSeconds });
    this.#reviewVersion = (conversionReviewVersions ?? []).find(isReviewVersion) ?? 'v1';
    this.#apiVersions = new Set((spec.versions ?? []).map(({ name }) => `${spec.group}/${name}`));
    this.#newUid = () => context.newUid();
  }

  /**
   * The objects in a version, in the same order. Those of other versions are converted, and not pruned. Long lists are
   * sent in several calls.
   *
   * @param apiVersion `<group>/<version>`.
   * @throws {StatusError} 500 when one of them cannot be converted.
   */
  async convert(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const others = [...objects.entries()].filter(([, object]) => object.apiVersion !== apiVersion);
    for (const [, object] of others) this.#checkVersions(object, apiVersion);
    const converted = [...objects];
    for (const batch of batchesOf(others)) {
      const answers = await this.#call(batch, apiVersion);
      for (const [i, { index }] of batch.entries()) {
        const answer = answers[i];
        if (answer !== undefined) converted[index] = answer;
      }
    }
    return converted;
  }

  /** Closes the connections once all calls have been answered. */
  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Closes the connections at once; open calls fail. */
  async destroy(): Promise<void> {
    await this.#client.destroy();
  }

  #checkVersions({ apiVersion: from = '' }: KubeObject, to: string): void {
    if (!this.#apiVersions.has(to)) {
      throw plainError(`request to convert CR to an invalid group/version: ${to}`);
    }
    if (!this.#apiVersions.has(from)) {
      throw plainError(`request to convert CR from an invalid group/version: ${from}`);
    }
  }

  async #call(batch: readonly ConversionItem[], apiVersion: string): Promise<KubeObject[]> {
    const first = batch[0]?.object;
    const failed = `conversion webhook for ${typeText(first?.apiVersion ?? '', first?.kind ?? '')}`;
    const texts = batch.map(({ text }) => text);
    const uid = this.#newUid();
    const version = this.#reviewVersion;
    let answers: readonly unknown[];
    try {
      const answer = await this.#client.call(conversionReviewOf(texts, apiVersion, version, uid));
      answers = convertedObjects(readAnswer(answer, conversionReview, version), version, uid);
    } catch (error) {
      throw plainError(`${failed} failed: ${errorMessage(error)}`);
    }
    if (answers.length !== batch.length) {
      throw plainError(`${failed} returned ${answers.length} objects, expected ${batch.length}`);
    }
    return batch.map(({ object }, i) => convertedObject(object, answers[i], apiVersion, failed));
  }
}

/** An object to convert, with its index among all of them. */
interface ConversionItem {
  readonly index: number;
  readonly object: KubeObject;
  readonly text: string;
}

/** The batches of objects, encoded one batch at a time. */
function* batchesOf(
  objects: readonly (readonly [number, KubeObject])[],
): Generator<readonly ConversionItem[]> {
  let batch: ConversionItem[] = [];
  let characters = 0;
  for (const [index, object] of objects) {
    const text = encodeSorted(object);
    const isFull = batch.length === maxObjects || characters + text.length > maxCharacters;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      characters = 0;
    }
    batch.push({ index, object, text });
    characters += text.length;
  }
  if (batch.length > 0) yield batch;
}

/** A converted object with its restored metadata. @throws {StatusError} 500 */
function convertedObject(
  original: KubeObject,
  answer: unknown,
  apiVersion: string,
  failed: string,
): KubeObject {
  const converted = objectOf(answer);
  const { apiVersion: version, kind, ...rest } = converted;
  if (version !== apiVersion) {
    const received = typeof version === 'string' ? version : '';
    throw plainError(
      `${failed} returned invalid object at index 0: invalid groupVersion (expected ${apiVersion}, received ${received})`,
    );
  }
  if (kind !== original.kind) {
    const received = typeof kind === 'string' ? kind : '';
    throw plainError(
      `${failed} returned invalid object at index 0: invalid kind (expected ${original.kind ?? ''}, received ${received})`,
    );
  }
  try {
    checkSameObject(original, converted);
  } catch (error) {
    throw plainError(`${failed} returned invalid object: ${errorMessage(error)}`);
  }
  try {
    const metadata = convertedMetadata(original.metadata, converted);
    return { ...rest, apiVersion, ...(original.kind === undefined ? {} : { kind: original.kind }), metadata };
  } catch (error) {
    throw plainError(`${failed} returned invalid metadata: ${errorMessage(error)}`);
  }
}

/** The object, checked as apimachinery's UnstructuredJSONScheme does. @throws {StatusError} 500 */
function objectOf(answer: unknown): JsonRecord {
  if (answer === undefined || answer === null) throw plainError('unexpected end of JSON input');
  if (!isRecord(answer)) throw plainError(`json: cannot unmarshal ${JSON.stringify(answer)} into an object`);
  if (typeof answer['kind'] !== 'string' || answer['kind'] === '') {
    throw plainError(`Object 'Kind' is missing in '${JSON.stringify(answer)}'`);
  }
  return answer;
}
