// @ts-check
/**
 * The types that the modules of the page share: this file exports nothing, so that they are global. All values are frozen by convention: nobody alters what it is given.
 *
 * Offsets count UTF-16 code units from 0, `end` exclusive; lines count from 1, both ends inclusive.
 *
 * @typedef {"submitted"|"working"|"input-required"|"auth-required"|"completed"|"failed"|"canceled"|"rejected"} TaskState
 *
 * @typedef {{text: string, mediaType?: string, metadata?: Record<string, any>}} TextPart
 * @typedef {{raw: string, filename?: string, mediaType?: string}} FilePart  `raw` is base64
 * @typedef {{url: string, filename?: string, mediaType?: string}} LinkPart
 * @typedef {{data: any, mediaType?: string}} DataPart
 * @typedef {TextPart|FilePart|LinkPart|DataPart} Part  a part of A2A 1.0, as JSON
 *
 * @typedef {object} Message  a message of A2A 1.0, as JSON
 * @property {string} messageId
 * @property {"ROLE_USER"|"ROLE_AGENT"} role
 * @property {Part[]} parts
 * @property {string} [contextId]
 * @property {string} [taskId]
 * @property {Record<string, any>} [metadata]
 *
 * @typedef {object} TaskView  what is shown of a task
 * @property {string} taskId
 * @property {TaskState} state
 * @property {string} timestamp  of the last status, ISO 8601
 * @property {Message[]} messages  the conversation: what the user sent, and what the agent said for good
 * @property {string} status  the status line, as "Writing report.md…"; "" for none
 * @property {string} reply  the reply as far as it is written; "" when it stands in `messages`
 * @property {Record<string, number>} artifacts  the versions of the artifacts that it has changed, as far as known
 * @property {Operation|null} operation  what a message asked for, if the task is an operation
 * @property {string} stream  the stream that feeds it; events of others are ignored
 * @property {string|null} joinedAt  epoch and generation at which the stream repeats what `messages` has already
 *
 * @typedef {object} Operation  `metadata["urn:a2a-canvas:canvas:v1"]` of a message
 * @property {"edit"|"undo"|"redo"|"restore"|"put"|"annotate"|"reply"|"resolve"|"accept"|"reject"|"withdraw"|"accept-all"} op
 * @property {string} artifactId
 * @property {number} [baseVersion]
 * @property {SelectionRequest} [selection]
 * @property {string} [strategy]
 * @property {"suggest"} [mode]
 * @property {number} [version]
 * @property {string} [text]
 * @property {string} [name]
 * @property {boolean} [merge]
 * @property {boolean} [group]
 * @property {string} [annotationId]
 * @property {boolean} [ask]
 *
 * @typedef {object} SelectionRequest
 * @property {number} [start]
 * @property {number} [end]
 * @property {number} [lineStart]
 * @property {number} [lineEnd]
 * @property {string} [text]
 *
 * @typedef {object} ArtifactView  an artifact as it is now
 * @property {string} artifactId
 * @property {string} name
 * @property {string|null} text  null if it has no text part
 * @property {boolean} cut  the text is longer than what is kept of it here
 * @property {string} mediaType  of the text, "" if unknown
 * @property {Part[]} others  its files and data, in order
 * @property {number} version  while it is written: the number that the version will have
 * @property {"agent"|"user"} author
 * @property {boolean} open  it is being written, and changes from elsewhere are refused
 * @property {string} taskId  that changed it last
 *
 * @typedef {object} Edit  a passage that is being rewritten
 * @property {string} key  `taskId/id`
 * @property {string} artifactId
 * @property {number} start  the passage, in the artifact's text as it is now
 * @property {number} end
 * @property {"replace"|"insert_before"|"insert_after"} strategy
 * @property {string} text  what has been written so far
 * @property {number} baseVersion
 * @property {boolean} complete  it waits only for its version
 * @property {boolean} lost  the text under it has changed, so its place is not known
 * @property {boolean} suggested  it becomes a suggestion, and no version
 * @property {string} [annotationId]  that it has become
 *
 * @typedef {object} AnnotationView  a comment or a suggestion: what docs/annotations.md has under `canvas`
 * @property {string} annotationId
 * @property {number} number
 * @property {"comment"|"suggestion"} kind
 * @property {"open"|"accepted"|"rejected"|"resolved"|"stale"} state
 * @property {"agent"|"user"} author
 * @property {string} [by]
 * @property {string} at
 * @property {string} taskId
 * @property {{exact: string, prefix: string, suffix: string}} quote
 * @property {string} [replacement]
 * @property {{author: "agent"|"user", by?: string, at: string, text: string}[]} thread
 * @property {{author: "agent"|"user", by?: string, at: string, artifactVersion?: number}} [decision]
 * @property {{start: number, end: number}|null} place  in the artifact's text as it is now; null if it is not known
 *
 * @typedef {object} Note  what is marked in the text for an annotation, or for a passage that was rewritten
 * @property {string} id
 * @property {"comment"|"suggestion"|"rewritten"} kind
 * @property {number} start
 * @property {number} end
 * @property {string} text  that a suggestion puts there
 * @property {boolean} chosen
 * @property {boolean} [growing]  it is being written
 *
 * @typedef {object} RewriteOutcome  a passage that was rewritten, until the user moves on
 * @property {string} artifactId
 * @property {number} version  that it made
 * @property {number} start  of the new text in it
 * @property {number} end
 * @property {string} old
 * @property {string} instruction
 * @property {string} said
 *
 * @typedef {object} PassageSelection  the passage that the user has selected
 * @property {string} artifactId
 * @property {number} version
 * @property {number} start
 * @property {number} end
 * @property {number} lineStart
 * @property {number} lineEnd
 * @property {string} text
 * @property {{start: number, end: number, text: string}[]} [others]  passages that are selected with it
 *
 * @typedef {{owner: string, level: "read"|"comment"|"edit"|"approve"}} Shared
 *
 * @typedef {object} ContextSummary  a conversation in the list
 * @property {string} contextId
 * @property {string|null} name  that the user gave it
 * @property {string} request  the first 200 characters of its first message
 * @property {string} updatedAt
 * @property {number} working  the number of its tasks that are not settled
 * @property {number} [waiting]  the number of its tasks that wait for an answer
 * @property {{artifactId: string, name: string}[]} artifacts
 * @property {boolean} [agentsSuggest]  what agents change becomes suggestions
 * @property {Shared} [shared]  how somebody else has given it to the user
 *
 * @typedef {object} Outgoing  a message on its way
 * @property {Message} message
 * @property {string} contextId
 * @property {string} error  why it could not be sent; "" while it is on its way
 *
 * @typedef {object} Server  what the agent card says
 * @property {string} name
 * @property {string} description
 * @property {boolean} canvas  it has urn:a2a-canvas:canvas:v1, and so `/artifacts`
 * @property {any} card
 *
 * @typedef {import("./identity/session.js").Identity} Identity
 *
 * @typedef {"none"|"connecting"|"online"|"reconnecting"} Connection
 *
 * @typedef {object} Notice
 * @property {number} id
 * @property {"error"|"info"} kind
 * @property {string} text
 * @property {{label: string, run: () => void}} [action]  what can be done about it, as to undo it
 * @property {string} [contextId]  the conversation that it is about
 * @property {{artifactId: string, version: number}} [of]  the version that it is about: it goes when another one is current
 *
 * @typedef {object} State
 * @property {Server|null} server
 * @property {Identity|null} identity  null where nobody signs in
 * @property {ContextSummary[]} contexts  newest first
 * @property {string} nextPage  the token of the next page of contexts, "" at the end
 * @property {string} query  what the contexts were searched for
 * @property {string|null} contextId  the open conversation; null for a new one
 * @property {string|null} givenId  the id that the page gave the open conversation, if the server has replaced it
 * @property {boolean} loaded  it is known what to show: the tasks of the open conversation are there, or a new one is open
 * @property {Connection} connection  of the open conversation
 * @property {number} losses  how often a connection was lost since the page was loaded
 * @property {number} retryAt  when the next attempt is made, in ms since 1970; 0 if none is planned
 * @property {number} watchers  how many look at the conversation; 0 if it is not known
 * @property {import("./presence/roster.js").Roster|null} presence  who is here; null if it is not known
 * @property {Shared|null} shared  how the open conversation was given to the user; null for one of their own
 * @property {string[]} working  the tasks that the server says are working
 * @property {Record<string, TaskView>} tasks  by id, oldest first
 * @property {Record<string, Record<string, number>>} made  the newest version of each artifact that each task has made, as the lists of versions say, and the changes that were seen
 * @property {Record<string, Outgoing>} outgoing  by message id
 * @property {Record<string, ArtifactView>} artifacts  by id, in the order in which they came
 * @property {Record<string, Edit>} edits  by key
 * @property {Record<string, import("./state/annotations.js").Annotated>} annotations  by the id of the artifact
 * @property {string|null} annotationId  the annotation that the user has chosen
 * @property {RewriteOutcome|null} outcome
 * @property {string|null} artifactId  the artifact that the user has chosen; null for the one that changed last
 * @property {string|null} lastChanged  the artifact that changed last
 * @property {number|null} version  the old version that is shown; null for the current one
 * @property {ArtifactView|null} old  the content of that old version, once it has been read
 * @property {PassageSelection|null} selection
 * @property {Notice[]} notices
 *
 * @typedef {any} Json  what came from the server
 *
 * @typedef {{type: "server", server: Server}
 *   | {type: "identity", identity: Identity|null}
 *   | {type: "shared", contextId: string, shared: Shared|null}
 *   | {type: "contexts", contexts: ContextSummary[], nextPage: string, query: string, more?: boolean}
 *   | {type: "context-changed", context: ContextSummary}
 *   | {type: "context-removed", contextId: string}
 *   | {type: "context-opened", contextId: string|null}
 *   | {type: "context-renamed", from: string, to: string}
 *   | {type: "tasks", contextId: string, tasks: Json[]}
 *   | {type: "task-event", contextId: string, stream: string, event: Json}
 *   | {type: "artifact-event", contextId: string, event: Json}
 *   | {type: "versions", contextId: string, artifactId: string, versions: Json[]}
 *   | {type: "activity", contextId: string, watchers: number, working: string[]}
 *   | {type: "presence", contextId: string, roster: import("./presence/roster.js").Roster}
 *   | {type: "connection", contextId: string|null, connection: Connection, retryAt: number}
 *   | {type: "subscribed", contextId: string}
 *   | {type: "sending", contextId: string, message: Message}
 *   | {type: "not-sent", messageId: string, error: string}
 *   | {type: "discarded", messageId: string}
 *   | {type: "artifact-shown", artifactId: string|null, version: number|null}
 *   | {type: "version-read", contextId: string, content: ArtifactView}
 *   | {type: "annotations-read", contextId: string, artifactId: string, annotations: Json[]|null, news: number}
 *   | {type: "annotations-changed", contextId: string, event: Json}
 *   | {type: "annotation-chosen", annotationId: string|null}
 *   | {type: "rewritten", outcome: RewriteOutcome|null}
 *   | {type: "selected", selection: PassageSelection|null}
 *   | {type: "notice", kind: "error"|"info", text: string, action?: Notice["action"], contextId?: string, of?: Notice["of"]}
 *   | {type: "notice-dismissed", id: number}} Action
 *
 * @typedef {import("./app.js").App} App
 */
