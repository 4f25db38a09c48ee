/** Why a Pod's networks cannot be attached: its sandbox cannot be made. The message is what multus and plugins say. */
export class AttachmentError extends Error {
  override readonly name = 'AttachmentError';
  /** Of a further Event of the Pod, that multus itself sends. */
  readonly reason: 'NoNetworkFound' | undefined;

  constructor(message: string, reason?: 'NoNetworkFound') {
    super(message);
    this.reason = reason;
  }
}
