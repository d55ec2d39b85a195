// @ts-check
/**
 * What the page says, by the module that says it; `say` fills in what is in braces. Lists are where they are used: keys_dialog.js, words.js,
 * errors.js, chat/start.js, developer/events.js, document/files/kinds.js, passage/actions.js, versions/history.js.
 */

export const TEXT = Object.freeze({
  // used in several places
  signInRequired: "This server requires you to sign in.", cancelTask: "Cancel the task", attachments: "Attachments",
  newConversation: "New conversation", documents: "Documents", retry: "Retry", loading: "Loading…", undo: "Undo", signIn: "Sign in",
  developerView: "Developer view", copyJson: "Copy JSON", close: "Close", cancel: "Cancel", copy: "Copy", reload: "Reload",
  // a2a/client.js
  noAnswer: "The server does not answer. Check that it is running and that you are online.",
  noStream: "The server did not answer with a stream.",
  noAgentCard: "There is no agent card at {base}.well-known/agent-card.json: check that this is the address of an A2A server.",
  notJson: "The server answered with status {status}, but not with JSON.",
  // a2a/servers.js
  notAnAddress: "{asked} is not a server address. Server addresses begin with http:// or https://.",
  mayNotConnect: "This page is not allowed to connect to {origin}. To allow it, start its server with --page {origin}.",
  otherDoesNotAnswer: "{origin} does not answer. Check that it is running.",
  otherRefusesPage: "{origin} does not allow requests from this page. Start an a2a-canvas server with --cors-origin {own}; any other server must allow this origin (CORS) and the headers A2A-Version, A2A-Extensions and Content-Type.",
  needsJsonRpc: "This server speaks A2A 1.0 over {bindings} only. This page needs JSON-RPC.",
  needsVersion1: "This server speaks A2A {versions} only. This page needs 1.0.",
  notAnAgentCard: "This server’s answer to a request for its agent card is not an agent card.",
  // app.js
  leftWhileAdding: "You opened another conversation before all files were added. Go back to see which are missing.",
  conversationGone: "This conversation no longer exists.",
  noConnectionLeft: "Your message is waiting: other windows of this page use all of the browser's connections to this server. Close one of them.",
  readOnly: "You can read this conversation, but not change it.",
  noDocuments: "This server does not accept documents. Attach files to a message instead.",
  documentNotRead: "{name} could not be read. Add it again.",
  // chat/approvals.js
  whyNot: "Reason, or what to do instead", approveAll: "Approve all", approve: "Approve", dont: "Don’t", approval: "Approval",
  waitingForOwner: "Waiting for the owner to approve", agentAsksToRun: "The agent asks to run", waitsForYou: "Waiting for you",
  waitsForOwner: "Waiting for the owner", approved: "Approved", notApproved: "Not approved", notAnswered: "Not answered",
  inputOf: "Input of {tool}", aTool: "a tool", moreCharacters: "… and {count} more characters", withoutInput: "Without input.",
  // chat/attachments.js
  remove: "Remove {name}", data: "Data", file: "File",
  // chat/chat.js
  dropToAttach: "Drop files to attach them",
  sharedToComment: "{owner} shared this conversation with you. You can comment and suggest changes.",
  sharedReadOnly: "{owner} shared this conversation with you. You can read it, but not change it.",
  copyTheLink: "Copy the link", copyLinkConversation: "Copy the link to this conversation", conversations: "Conversations",
  looking: "{people} viewing", peopleAreLooking: " people are viewing",
  linkCopied: "Link copied. Anyone with access to this conversation can open it.",
  copyFromAddressBar: "Copy the address from the address bar.",
  // chat/composer.js
  message: "Message", attachFiles: "Attach files", send: "Send", stop: "Stop", stopEsc: "Stop (Esc)", yourAnswer: "Your answer",
  askAboutPassage: "Say what to change in it, or ask about it", askForChange: "Reply, or say what to change",
  askForDocument: "Ask for a document",
  leftWhileReading: "You opened another conversation while the files were read, so the message was not sent. Go back to send it, and attach the files again.",
  fileNotRead: "A file could not be read. Remove it or attach it again.",
  fileTooLarge: "{name} is {size}; the limit is {limit} per file.", waitingForServer: "Waiting for the server",
  conversationOpening: "The conversation is being opened", sendOnceConnected: "You can send once you are connected again",
  removePassage: "Remove the reference", passageOf: "{place} of {name}: “{text}”", sentThen: "{reason}. Your message will then be sent", escStops: "Esc stops",
  enterSends: "Enter sends, Shift+Enter starts a new line",
  // chat/entries.js
  stopped: "Stopped.", failedWithoutReason: "The task failed without a reason.", placeIn: "{place} of {name}",
  savedTimes: "Saved {puts}.",
  // chat/markdown_text.js
  replyCut: "The reply is longer. Only its beginning is shown.",
  // chat/start.js
  welcome: "What shall we write?",
  welcomeMore: "Ask for a document and watch it grow. Then select any passage and say what to change.",
  examples: "Examples", or: "Or ", openOwnDocument: "open a document of your own",
  // chat/thread.js
  messages: "Messages", jumpLatest: "Jump to latest", reply: "Reply", askAgain: "Ask again", notSent: "Not sent: {text}",
  discard: "Discard", startAgain: "Start again", youColon: "You: ", madeVersion: "version {version}", showAll: "Show all",
  iHaveSignedIn: "I have signed in", question: "Question", agentAsksToSignIn: "The agent asks you to sign in",
  agentAsks: "The agent asks",
  // clipboard.js
  cannotCopy: "The browser blocked copying.",
  // contexts.js
  search: "Search", searchConversations: "Search conversations", showMore: "Show more", hideConversations: "Hide conversations",
  backTo: "Back to {beside}", guest: "Guest", signOut: "Sign out", actionsFor: "Actions for {title}", workingColon: "Working: ",
  waitsForAnswer: "Waiting for your answer", waitsForAnswerColon: "Waiting for your answer: ", leaveMenu: "Leave…", shareMenu: "Share…",
  haveAgentsSuggest: "Have agents suggest", letAgentsWrite: "Let agents write",
  agentsSuggest: "Agents now suggest changes to documents, and people accept or reject them.",
  agentsWrite: "Agents change documents directly again.",
  rename: "Rename", deleteMenu: "Delete…", nameConversation: "Name of the conversation", renamed: "Renamed to “{name}”.",
  originalName: "The conversation has its original name again.",
  documentsWillGo: "Its messages and {documents} with all their versions will be deleted",
  messagesWillGo: "Its messages will be deleted", askDelete: "Delete “{title}”?",
  goneForEveryone: "{lost}, for everyone who has the link. This cannot be undone.",
  delete: "Delete", askLeave: "Leave “{title}”?",
  leaveMeans: "You will no longer be able to open it, unless {owner} shares it with you again.",
  leave: "Leave", noneMatch: "No conversations match “{query}”.", noConversations: "Your conversations appear here.",
  // developer/drawer.js
  copied: "Copied {what}.", events: "Events", agentCardTab: "Agent card", selectedTextTab: "Selected text",
  developerParts: "Parts of the developer view", closeDeveloperView: "Close the developer view", kindEvent: "Kind of event",
  filter: "Filter", textInEvents: "Text in the events", agentCardNotRead: "The agent card could not be read.",
  theAgentCard: "the agent card",
  nothingSelected: "Select a passage in the document to see how a request refers to it.",
  theSelectedText: "the selected text",
  aboutOffsets: "Version {version}. Offsets count UTF-16 code units, lines count from 1.",
  // developer/event_list.js
  nothingMatches: "Nothing matches.", nothingSent: "Nothing has been sent in this conversation yet.",
  whenWasSent: "when it was sent", sinceRequest: "since the request", someOf: "{shown} of {all}", blockIndex: "index of the block",
  epochAndGeneration: "epoch and generation", copyAsCurl: "Copy as curl", copyAsPython: "Copy as Python",
  // document/diagrams/
  diagram: "Diagram: {kind}", emptyDiagram: "The diagram is empty.", selectDiagram: "Select its source", saveSvg: "Save as SVG",
  savePng: "Save as PNG", diagramWrong: "This diagram cannot be drawn. {error}",
  // document/data/csv.js
  quoteOpen: "a quote that begins in line {line} is not closed", quoteClosed: "in line {line}, text follows a closing quote",
  // document/data/grid.js
  tableOf: "Table {name}", tableTooLarge: "it is longer than 5 million characters", copyTable: "Copy for spreadsheets",
  downloadTable: "Download for spreadsheets", tableCopied: "Copied.",
  tableFormulas: "{cells} would run as a formula in a spreadsheet: copied or downloaded here, each gets an apostrophe.",
  // document/data/tree.js
  editValue: "Double-click or Enter to edit", noValue: "Write text in quotation marks, a number, true, false or null.",
  // document/files/files.js
  more: "More", dropToAdd: "Drop files to add them as documents", download: "Download", downloadAll: "Download all as a ZIP file",
  addDocuments: "Add documents…",
  downloadTooLarge: "This server does not offer downloads of documents this large.",
  // document/files/preview.js
  previewOf: "Preview of {name}",
  pictureBroken: "This picture cannot be displayed. Download it to open it elsewhere.",
  table: "Table", showNext: "Show {next} of {rest} more",
  // document/growing.js
  openNamed: "Open {name}",
  // document/pane.js
  documentCut: "Only the first 20 MB of this document are shown, and it cannot be edited here. Download it to see all of it.",
  print: "Print or save as PDF", outline: "Outline", noHeadings: "No headings",
  view: "View", jumpEnd: "Jump to end", noDocumentYet: "Documents of this conversation appear here.",
  versionNumber: "Version {version}", documentVersion: "{name}, version {version}",
  oldVersionShown: "This is version {version}. It is read-only; “Restore” in “Versions” makes it the current one.",
  viewNotLoaded: "This view could not be loaded.", documentCopied: "Copied {name}.",
  downloadInstead: "Download the document instead.", writing: "Writing… It is read-only until it is finished.",
  rewritingPassage: "Rewriting a passage…",
  shownAsSource: "Shown as source: {why}.", placeChanged: "Someone else has changed this place, so it was not saved.",
  fixError: "{name} reports this error when it runs. Fix it.\n\n```\n{error}\n```",
  // document/program/program.js
  programOf: "Program {name}", programErrors: "Errors of the program", fixIt: "Fix it",
  programNotStarted: "The program could not be started. Reload the page and try again.",
  programTooLoud: "The program was stopped: it sends too many messages.",
  programLeft: "The program was stopped: it tried to open {address}.",
  // document/saving/conflict_view.js
  conflict: "Conflict", sameWords: "The same words were", placesWere: "{places} were", nothing: "nothing",
  changedMeanwhile: "{where} changed by someone else while you typed.",
  chooseVersion: " Choose which version to keep, or edit the text. Both versions are kept until you save.",
  save: "Save", textToKeep: "Text to keep", yours: "Yours", inDocument: "In the document", both: "Both",
  // document/saving/saving.js
  saved: "Saved", notSaved: "Not saved", notSavedBecause: "Not saved: {error}", saving: "Saving…",
  putNoAnswer: "the server does not answer.", changesKept: "Your changes are kept.",
  changesBack: "Your unsaved changes to {name} have been restored.",
  // document/views.js
  sourceOf: "Source of {name}", run: "Run", runAgain: "Run again", aboutRun: "It runs without access to this page or any network.",
  changedSinceRun: "The document has changed since it was started.",
  // embed/embed.js
  openConversation: "Open the conversation", openIn: "Open in {name}", openInPage: "Open in the page", isWritten: "Writing…",
  noLinkHere: "This address has no link to a conversation: it must end with #share= and the token of a link.",
  // identity/link.js
  guestOrUser: "{user} can open the conversation, too. A guest’s messages have no name.",
  guestOnly: "The conversation is not shared with {user} by name, so the link opens it as a guest. {user} stays signed in everywhere else.",
  askUserOrGuest: "Open the link as {user}, or as a guest?", askGuest: "Open the link as a guest?", openAsGuest: "Open as a guest",
  openAs: "Open as {user}",
  // identity/session.js
  keyEnded: "This key is no longer valid.", linkEnded: "This link is no longer valid.",
  linkEndedAskAgain: "This link is no longer valid. Ask for a new one.", linkNotOpened: "The link could not be opened. Try again.",
  // identity/sharing.js
  inHour: "In an hour", inDay: "In a day", inWeek: "In a week", in30Days: "In 30 days", never: "Never", read: "Read", mayComment: "Comment",
  edit: "Edit", editAndApprove: "Edit and approve calls",
  cannotShare: "This conversation cannot be shared this way. Invite someone other than its owner, or create a link.",
  sharedWithList: "Shared with", shareTitle: "Share “{title}”", inviteUser: "Invite a user",
  aboutInvite: "Enter the name they sign in with.", user: "User", invite: "Invite", createALink: "Create a link",
  aboutLink: "Anyone with the link can open the conversation without signing in.",
  createLink: "Create link", userMissing: "Enter the name of a user.", sharedWith: "Shared with {user}.",
  notShared: "Not shared with anyone.", may: "may {level}", until: ", until {time}", revoke: "Revoke",
  revokeShareOf: "Revoke the share of {who}", link: "Link",
  cannotCopyPress: "The browser blocked copying. Press Ctrl+C.",
  copyLinkNow: "Copy the link now. It will not be shown again.", theyMay: "They may", ends: "Ends",
  // identity/sign_in.js
  signInWithAccount: "Sign in with your account", otherSignInRequired: "{host} requires you to sign in.",
  pasteKey: "{where} Paste the key or the token that its operator gave you. It is kept until you close this tab.",
  keyOrToken: "Key or token",
  keyMalformed: "A key contains only letters, digits and punctuation, without spaces. Copy it again.",
  keyNoAnswer: "The server does not answer. Check that you are online and try again.",
  tooManyRequests: "Too many requests. Try again in {seconds} seconds.",
  keyNotChecked: "The server cannot check this key right now. Try again.",
  keyUnknown: "The server does not recognise this key. Check that you copied all of it, or ask for a new one.",
  // layout.js
  views: "Views", document: "Document", changed: "changed", conversation: "Conversation",
  // main.js
  partMissing: "Part of the page could not be loaded. Trying again.",
  // notices.js
  offline: "You are offline. The page reconnects by itself.", connectionLost: "Connection lost. The page reconnects by itself.",
  connectedAgain: "Connected again", dismiss: "Dismiss", reconnectingIn: "Connection lost. Reconnecting in {seconds} s…",
  reconnecting: "Reconnecting…",
  // passage/bar.js
  quickActions: "Quick actions", describeChange: "Describe the change", passageInstruction: "Change to the selected passage",
  rewrite: "Rewrite", passageBar: "Change the selected passage",
  passageSelected: "{what} selected. Press Tab to change it.",
  // passage/rewriting.js
  passageNotSent: "Your changes to the document could not be saved, so the passage was not sent.",
  alreadyUndone: "This change is already undone.",
  changedSince: "The document has changed since, so this was not undone. To undo the latest change, use Undo above the document.",
  // passage/note.js
  comment: "Comment", suggest: "Suggest", notes: "Notes on the passage", yourComment: "Comment on the selected passage",
  editText: "Edit text", textNotSaved: "Your text was not saved.", newText: "New text of the selected passage", writeComment: "Write a comment", yourSuggestion: "Replacement for the selected passage", suggestDeletion: "Suggest deleting it",
  back: "Back", noteAdded: "Added.",
  // passage/outcome.js
  passageRewritten: "The passage was rewritten", keep: "Keep", tryAgain: "Try again", before: "Before", nothingThere: "Nothing was there.",
  // review/
  review: "Comments and suggestions", reviewTitle: "Review", openCount: "{count} open", unreadCount: "{count} new", author: "Author", allAuthors: "Everyone",
  acceptAll: "Accept all", acceptCount: "Accept all {count}", closeReview: "Close comments and suggestions",
  openThreads: "Open", passageGone: "Without a place: {count}", decided: "Closed: {count}",
  nothingOpen: "Nothing is open.", noThreads: "Select a passage to comment on it, or to suggest a change.",
  agent: "Agent", you: "You", suggestionBy: "{writer} suggests", youSuggest: "You suggest", accept: "Accept", reject: "Reject", resolve: "Resolve",
  accepted: "Accepted by {writer}", rejected: "Rejected by {writer}", resolved: "Resolved by {writer}", replyPlaceholder: "Reply…", askAgent: "Ask the agent",
  agentAnswers: "The agent is answering…", agentWaits: "The agent needs your answer in the chat.", unanswered: "No answer. {why}",
  deleteComment: "Delete the comment", deleteSuggestion: "Delete the suggestion",
  deleteThread: "Its replies are deleted, too. This cannot be undone.",
  passageChanged: "The passage has changed since. Edit it yourself, or reject the suggestion.", suggested: "Suggested",
  // servers.js
  chooseServer: "Choose a server", thisServer: "This server ({host})",
  // state/task.js
  working: "Working…",
  // upgrade.js
  newerPage: "The server has a newer version of this page.",
  // presence/people.js, presence/roster.js
  peopleHere: "People here", morePeople: "{count} more people", someone: "Someone", agentWorksOn: "{name}, working on {what}",
  // palette/palette.js
  find: "Find", findAnything: "Find a conversation, document, version or action", found: "What was found", nothingFound: "Nothing found.",
  actions: "Actions", inText: "In the documents", lineOf: "{name}, line {line}", writeMessage: "Write a message", saveNow: "Save now",
  showKeys: "Show the keys", inOthers: "In other conversations", searchingOthers: "Searching other conversations…",
  nothingInOthers: "Nothing found in other conversations.", othersNotSearched: "Other conversations were not searched: {why}",
  // versions/compare.js
  oldVersion: "Old version", newVersion: "New version",
  // versions/rendered.js
  unchanged: "{blocks} unchanged", sameText: "Nothing that can be read has changed.",
  onlyInSource: "Changes in {blocks} can be seen only in Source.",
  // versions/versions.js
  redo: "Redo", version: "Version", versions: "Versions", closeVersions: "Close the versions", current: "current",
  incomplete: "incomplete", contentRemoved: "content removed", comparison: "Comparison of two versions",
  versionFacts: "Version {number} of {count} · {facts}", compare: "Compare", sideBySide: "Side by side", inline: "Inline",
  endComparison: "End comparison", restore: "Restore", copyLink: "Copy link", withVersion: "with version {number}",
  rendered: "Rendered", source: "Source", compareWith: "Compare with", fromTo: "Version {first} → version {second}",
  versionLinkCopied: "Link to this version copied.", linkIs: "The link is {link}",
  notSavedNotUndone: "Your changes are not saved yet, so nothing was undone.",
});

/** A text with its values filled in. @param {string} text @param {Record<string, any>} values */
export const say = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
