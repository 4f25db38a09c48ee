/** ConversionReview, v1 and v1beta1 (apiextensions `apiserver/conversion/webhook_converter.go`). */
import type { JsonRecord } from '../../objects/json.ts';
import { at, listAt, textAt } from '../../objects/read.ts';
import type { ReviewKind, ReviewVersion } from '../admission/webhooks/answer.ts';
import { typeText } from '../admission/webhooks/review.ts';

const group = 'apiextensions.k8s.io';
const kind = 'ConversionReview';

/** The review that asks a webhook to convert objects, and answers. */
export const conversionReview: ReviewKind = {
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
export function conversionReviewOf(
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
export function convertedObjects(
  review: JsonRecord,
  version: ReviewVersion,
  uid: string,
): readonly unknown[] {
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
